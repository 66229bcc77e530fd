// Memory that other processes of this host can map: what tutti_mem_alloc and tutti_mem_register make, and what peers
// have passed to a communicator.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/status.h"
#include "src/communicator/control/board.h"
#include "src/communicator/control/mesh.h"
#include "transports/shm/segment.h"

namespace tutti {

// This process's regions. Any thread.
class Regions {
 public:
  static Regions& of_process();

  Result<std::byte*> allocate(std::size_t bytes);
  Status free(std::byte* memory);
  // Replaces private memory by a region with the same content, and back. Whole pages. One that has been unmapped
  // meanwhile is forgotten, and told of.
  Status enroll(std::byte* memory, std::size_t bytes);
  Status withdraw(std::byte* memory);

  // The region that holds all of [memory, memory + bytes).
  std::optional<BufferReference> find(const std::byte* memory, std::size_t bytes) const;
  // Sends a region's descriptor; false if it is gone by now.
  Result<bool> pass(std::uint64_t region, Mesh& mesh, Rank peer) const;
  bool holds(std::uint64_t region) const;
  std::uint64_t withdrawn() const { return withdrawn_.load(std::memory_order_acquire); }  // Regions gone so far.

 private:
  enum class Origin : std::uint8_t { allocated, enrolled };
  struct Region {
    std::uint64_t id = 0;
    Segment memory;
    std::size_t bytes = 0;
    Origin origin = Origin::allocated;
  };
  bool overlaps(const std::byte* memory, std::size_t bytes) const;  // With the lock held.

  mutable std::mutex mutex_;
  std::map<const std::byte*, Region> regions_;  // By address.
  std::vector<Segment> lost_;                   // Taken away under us; kept, for their end would unmap them once more.
  std::uint64_t next_id_ = 1;
  std::atomic<std::uint64_t> withdrawn_ = 0;
};

// Which of this process's regions the peers of a communicator have.
class PassedRegions {
 public:
  PassedRegions(Mesh& mesh, Rank self, Rank ranks) : mesh_(mesh), self_(self), ranks_(ranks) {}

  // Whether all peers have it by now; not if it is gone, or if a peer has no room for a message: try at a later call.
  bool pass(std::uint64_t region);
  // Tells the peers which regions are gone, so that they do not keep the memory.
  void withdraw();
  std::uint32_t messages() const { return messages_; }  // Sent so far.

 private:
  bool withdraw(std::uint64_t region, Rank& holders);

  Mesh& mesh_;
  Rank self_, ranks_;
  std::map<std::uint64_t, Rank> holders_;  // By region: ranks below this have it.
  std::uint64_t seen_ = 0;                 // Regions gone when last looked.
  std::uint32_t messages_ = 0;
};

// Regions of the other ranks of a communicator.
class PeerRegions {
 public:
  Status adopt(Rank peer, ReceivedFrame received);
  // Unmaps what the peer has withdrawn.
  Status drop(Rank peer, const Frame& frame);
  // Whether there is more to collect from the peer than there was the last time.
  bool has_notifications(Rank peer, std::uint32_t messages) {
    if (peer >= notifications_.size()) notifications_.resize(peer + 1);
    return std::exchange(notifications_[peer], messages) != messages;
  }
  // Where this process sees a peer's buffer; null if the region has not come yet, or does not hold so much.
  std::byte* locate(Rank peer, const BufferReference& reference, std::uint64_t bytes) const;

 private:
  std::map<std::pair<Rank, std::uint64_t>, Segment> regions_;
  std::vector<std::uint32_t> notifications_;
};

}  // namespace tutti
