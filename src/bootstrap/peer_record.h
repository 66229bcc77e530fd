// Identity and location of a rank, known to all ranks.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "src/base/rank.h"
#include "src/base/status.h"
#include "src/bootstrap/location.h"

namespace tutti {

// Fixed-width plain data, sent over the network.
struct PeerRecord {
  // Equal if unix sockets can connect: same kernel and network namespace. Unique per rank with
  // JoinOptions::one_host_per_rank.
  std::array<std::uint8_t, 16> host{};
  std::array<std::uint8_t, 16> process{};  // Equal for threads of one process; never reused.
  std::array<std::uint8_t, 16> kernel{};   // Equal if ranks share CPUs, also with JoinOptions::one_host_per_rank.
  std::uint32_t cpus = 0;                  // Online CPUs of the host.
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
  char hostname[64] = {};
  std::uint16_t own_cpus = 0;   // Number of CPUs that the rank may run on; 0: unknown.
  std::uint16_t first_cpu = 0;  // First of these CPUs.
  Location location;
};
static_assert(sizeof(PeerRecord) == 168);

std::string hostname_of(const PeerRecord& record);
std::string describe(const PeerRecord& record);  // "host-a pid 4242"
Result<PeerRecord> own_record();
// Returns the record as if the rank were alone on its host.
PeerRecord as_own_host(PeerRecord record, Rank rank);

}  // namespace tutti
