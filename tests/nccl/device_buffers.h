// Streams of the current device, for tests that need more than buffers.h.
#pragma once

#include <functional>
#include <future>

#include "tests/executor/current_rig.h"
#include "tests/nccl/buffers.h"

namespace tutti::test {

// Runs `work` in a thread of its own: after earlier work of the stream, and before later work.
void put(cudaStream_t stream, std::function<void()> work);

// Makes the library return the memory to the device that it has cached for new communicators. Also loads its kernels,
// which need device memory on some GPUs.
void release_cached_memory();

// Blocks later work in a stream until open().
class StreamGate {
 public:
  explicit StreamGate(cudaStream_t stream) {
    put(stream, [opened = opened_.get_future().share()] { opened.wait(); });
  }
  ~StreamGate() { open(); }
  StreamGate(const StreamGate&) = delete;
  StreamGate& operator=(const StreamGate&) = delete;

  void open() {
    if (!open_) opened_.set_value();
    open_ = true;
  }

 private:
  std::promise<void> opened_;
  bool open_ = false;
};

}  // namespace tutti::test
