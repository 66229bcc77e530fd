// What ranks know of each other.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "src/base/rank.h"
#include "src/base/status.h"
#include "src/bootstrap/location.h"

namespace tutti {

// Fixed-width plain data: it travels.
struct PeerRecord {
  // Equal where unix sockets connect: one kernel, one network namespace. Ranks that join apart have one each.
  std::array<std::uint8_t, 16> host{};
  std::array<std::uint8_t, 16> process{};  // Equal for threads of one process; never used again.
  std::array<std::uint8_t, 16> kernel{};   // Equal where CPUs are shared, also by ranks that join apart.
  std::uint32_t cpus = 0;                  // Online there.
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
  char hostname[64] = {};
  std::uint16_t own_cpus = 0;   // How many CPUs it may run on; 0: it did not say.
  std::uint16_t first_cpu = 0;  // Of these.
  Location location;
};
static_assert(sizeof(PeerRecord) == 192);

std::string hostname_of(const PeerRecord& record);
std::string describe(const PeerRecord& record);  // "host-a pid 4242"
Result<PeerRecord> own_record();
// As if the rank were alone on its host.
PeerRecord set_apart(PeerRecord record, Rank rank);

}  // namespace tutti
