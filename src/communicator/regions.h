// Memory that other processes of this host can map: what tutti_mem_alloc and tutti_mem_register make, and what peers
// have passed to a communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "src/base/status.h"
#include "src/communicator/board.h"
#include "src/communicator/mesh.h"
#include "transports/shm/segment.h"

namespace tutti {

// This process's regions. Any thread.
class Regions {
 public:
  static Regions& of_process();

  Result<std::byte*> allocate(std::size_t bytes);
  Status free(std::byte* memory);
  // Replaces private memory by a region with the same content, and back. Whole pages.
  Status enroll(std::byte* memory, std::size_t bytes);
  Status withdraw(std::byte* memory);

  // The region that holds all of [memory, memory + bytes).
  std::optional<BufferReference> find(const std::byte* memory, std::size_t bytes) const;
  // Sends a region's descriptor; false if it is gone by now.
  Result<bool> pass(std::uint64_t region, Mesh& mesh, Rank peer) const;

 private:
  struct Region {
    std::uint64_t id = 0;
    Segment memory;
    std::size_t bytes = 0;
    bool enrolled = false;
  };
  bool overlaps(const std::byte* memory, std::size_t bytes) const;
  Status insert(Segment memory, std::size_t bytes, bool enrolled);

  mutable std::shared_mutex mutex_;
  std::map<const std::byte*, Region> regions_;  // By address.
  std::uint64_t next_id_ = 1;
};

// Regions of the other ranks of a communicator.
class PeerRegions {
 public:
  Status adopt(Rank peer, ReceivedFrame received);
  // Where this process sees a peer's buffer; null if the region has not come yet.
  std::byte* locate(Rank peer, const BufferReference& reference) const;

 private:
  std::map<std::pair<Rank, std::uint64_t>, Segment> regions_;
};

}  // namespace tutti
