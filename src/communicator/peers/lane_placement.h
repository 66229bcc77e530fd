// Placement of the lanes between each pair of ranks. Each rank reports what it can do as a writer; once all reports are
// exchanged, all ranks have the same table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/executor/thread_block/device.h"
#include "src/plan/problem.h"

namespace tutti {

// Cheapest placement first. Sent as one byte.
enum class LanePlacement : std::uint8_t {
  same_process,  // On the reader's device, which belongs to the writer's process.
  ipc,           // On the reader's device; the writer has opened it from another process.
  host,          // In host memory that both devices map.
  network,       // On different hosts: each end has its half in its own memory.
};

class LanePlacements {
 public:
  LanePlacements() = default;
  // `table`: placement for each pair, at [writer * ranks + reader].
  LanePlacements(Rank ranks, std::vector<LanePlacement> table) : ranks_(ranks), table_(std::move(table)) {}

  LanePlacement between(Rank writer, Rank reader) const { return table_[writer * ranks_ + reader]; }
  bool network() const;  // True if some lanes lead to other hosts.
  // Returns the number of pairs of ranks whose lanes are in host memory.
  std::size_t host_pairs() const;
  // Returns the number of such pairs before this one, in an order that is the same on all ranks.
  std::size_t host_pairs_before(Rank writer, Rank reader) const;
  // Returns the number of ranks whose lanes to `reader` have this placement.
  Rank writers_by(LanePlacement placement, Rank reader) const;

 private:
  Rank ranks_ = 0;
  std::vector<LanePlacement> table_;
};

// True if devices at this distance may access each other's memory. `level`: maximum distance.
bool p2p_wanted(const DeviceDistance& distance, P2pLevel level);
// Returns a description for the log, such as "NVLink x18".
std::string describe(const DeviceDistance& distance);

// Returns "to rank 1: NVLink x4; to ranks 2-3: host memory (...)". how[r] describes the route to rank r; `self` is
// skipped.
std::string describe_routes(const std::vector<std::string>& how, Rank self);

}  // namespace tutti
