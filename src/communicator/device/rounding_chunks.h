// Device memory for rounding options beyond the format: one chunk per call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "src/communicator/peers/rank_device_memory.h"
#include "src/executor/thread_block/compression_rounding.h"

namespace tutti {

// Not thread-safe.
class RoundingChunks {
 public:
  // Rounding options of a call, then a run count of the graph for each channel.
  static constexpr std::size_t kBytes = sizeof(KernelRounding) + kMaxChannels * sizeof(std::uint32_t);

  // Ensures that `count` chunks are available. May wait for the device.
  Status provide(RankDeviceMemory& memory, std::size_t count);
  // Returns a used chunk with its content, or new device memory if none is left.
  Result<std::byte*> take(RankDeviceMemory& memory);
  // Lends `chunk` to a graph. The chunk is available again once the last copy of the result is destroyed.
  std::shared_ptr<void> lease(std::byte* chunk);

 private:
  // Shared with graphs, which may outlive the communicator and return chunks from any thread.
  struct Lent {
    std::mutex mutex;
    std::vector<std::byte*> back;  // Returned chunks; its capacity suffices for all.
    std::size_t count = 0;         // Number of chunks lent, including returned ones.
  };
  void collect();

  std::vector<std::byte*> ready_;
  std::shared_ptr<Lent> lent_ = std::make_shared<Lent>();
};

}  // namespace tutti
