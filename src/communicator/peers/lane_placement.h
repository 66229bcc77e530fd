// Where the lanes from each rank to each other one lie. A rank says what it can do as a writer; when all have said so,
// all know the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/executor/thread_block/device.h"
#include "src/plan/problem.h"

namespace tutti {

// Cheapest placement first. Sent as one byte.
enum class LanePlacement : std::uint8_t {
  home,     // On the device of the reader, which is in the writer's process.
  inbox,    // The same, and the writer has opened it from another process.
  host,     // In memory of the host that both devices map.
  network,  // Their hosts differ: each end has its half in memory of its own.
};

class LanePlacements {
 public:
  LanePlacements() = default;
  // [writer * ranks + reader].
  LanePlacements(Rank ranks, std::vector<LanePlacement> table) : ranks_(ranks), table_(std::move(table)) {}

  LanePlacement between(Rank writer, Rank reader) const { return table_[writer * ranks_ + reader]; }
  bool network() const;  // Some lanes lead to other hosts.
  // Pairs of ranks whose lanes lie in host memory that both map,
  std::size_t host_pairs() const;
  // and how many come before this one, in an order that all ranks share.
  std::size_t host_pairs_before(Rank writer, Rank reader) const;
  // Ranks whose lanes to this one lie so.
  Rank writers_by(LanePlacement route, Rank reader) const;

 private:
  Rank ranks_ = 0;
  std::vector<LanePlacement> table_;
};

// Whether devices so far apart are to reach each other's memory, where farther ones than `level` are not.
bool p2p_wanted(const DeviceDistance& distance, Path level);
// For people: "NVLink x18".
std::string describe(const DeviceDistance& distance);

// "to rank 1: NVLink x4; to ranks 2-3: host memory (...)": how[r] leads to rank r, and to `self` nothing.
std::string describe_routes(const std::vector<std::string>& how, Rank self);

}  // namespace tutti
