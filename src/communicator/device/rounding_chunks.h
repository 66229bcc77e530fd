// Memory of a device for what calls ask of rounding beyond the format: a chunk for each call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "src/communicator/peers/home.h"
#include "src/executor/thread_block/compression_rounding.h"

namespace tutti {

// A thread at a time.
class RoundingChunks {
 public:
  // Rounding options of a call, then a run count of the graph for each channel.
  static constexpr std::size_t kBytes = sizeof(KernelRounding) + kMaxChannels * sizeof(std::uint32_t);

  // Until so many are there; may wait for the device.
  Status provide(DeviceHome& home, std::size_t count);
  // Returns a used chunk with its content, or new device memory if none is left.
  Result<std::byte*> take(DeviceHome& home);
  // For a graph, which holds what this gives: the chunk is taken again once the last holder has let go.
  std::shared_ptr<void> lend(std::byte* chunk);

 private:
  // Its holders may outlive the communicator, and release it in any thread.
  struct Lent {
    std::mutex mutex;
    std::vector<std::byte*> back;  // Has room for all that are lent.
    std::size_t count = 0;         // With those that are back.
  };
  void collect();

  std::vector<std::byte*> ready_;
  std::shared_ptr<Lent> lent_ = std::make_shared<Lent>();
};

}  // namespace tutti
