// Memory that other processes of this host can map: memory of tutti_mem_alloc and tutti_mem_register, and regions that
// peers have passed to a communicator.
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

// Regions of this process. Thread-safe.
class Regions {
 public:
  static Regions& of_process();

  Result<std::byte*> allocate(std::size_t bytes);
  Status free(std::byte* memory);
  // register_memory() replaces private memory by a region with the same content; deregister_memory() reverts that. Both
  // need whole pages. If the memory has been unmapped meanwhile, deregister_memory() forgets the region and fails.
  Status register_memory(std::byte* memory, std::size_t bytes);
  Status deregister_memory(std::byte* memory);

  // Returns the region that holds all of [memory, memory + bytes); nullopt if there is none.
  std::optional<BufferReference> find(const std::byte* memory, std::size_t bytes) const;
  // Sends a region's descriptor. Returns false if the region no longer exists.
  Result<bool> pass(std::uint64_t region, Mesh& mesh, Rank peer) const;
  bool holds(std::uint64_t region) const;
  // Returns the number of regions removed so far.
  std::uint64_t withdrawn() const { return withdrawn_.load(std::memory_order_acquire); }

 private:
  enum class Origin : std::uint8_t { allocated, enrolled };
  struct Region {
    std::uint64_t id = 0;
    Segment memory;
    std::size_t bytes = 0;
    Origin origin = Origin::allocated;
  };
  bool overlaps(const std::byte* memory, std::size_t bytes) const;  // Requires the lock.

  mutable std::mutex mutex_;
  std::map<const std::byte*, Region> regions_;  // By address.
  std::vector<Segment> lost_;  // Regions whose addresses were unmapped by the user. Kept, since their destructors would
                               // unmap the addresses again.
  std::uint64_t next_id_ = 1;
  std::atomic<std::uint64_t> withdrawn_ = 0;
};

// Records which regions of this process the peers of a communicator have.
class PassedRegions {
 public:
  PassedRegions(Mesh& mesh, Rank self, Rank ranks) : mesh_(mesh), self_(self), ranks_(ranks) {}

  // Sends a region to all peers that lack it. Returns false if the region no longer exists or a socket is full; try
  // again at a later call.
  bool pass(std::uint64_t region);
  // Notifies the peers of removed regions, so that they unmap the memory.
  void withdraw();
  std::uint32_t messages() const { return messages_; }  // Number of messages sent so far.

 private:
  bool withdraw(std::uint64_t region, Rank& holders);

  Mesh& mesh_;
  Rank self_, ranks_;
  std::map<std::uint64_t, Rank> holders_;  // By region: ranks below this have it.
  std::uint64_t seen_ = 0;                 // Number of removed regions at the last withdraw().
  std::uint32_t messages_ = 0;
};

// Regions of the other ranks of a communicator.
class PeerRegions {
 public:
  Status adopt(Rank peer, ReceivedFrame received);
  // Unmaps a region that the peer has withdrawn.
  Status drop(Rank peer, const Frame& frame);
  // Returns whether the peer has sent messages since the last call; `messages` is the number that it has sent.
  bool has_notifications(Rank peer, std::uint32_t messages) {
    if (peer >= notifications_.size()) notifications_.resize(peer + 1);
    return std::exchange(notifications_[peer], messages) != messages;
  }
  // Returns the address of a peer's buffer in this process; null if the region has not arrived yet, or is too small.
  std::byte* locate(Rank peer, const BufferReference& reference, std::uint64_t bytes) const;

 private:
  std::map<std::pair<Rank, std::uint64_t>, Segment> regions_;
  std::vector<std::uint32_t> notifications_;
};

}  // namespace tutti
