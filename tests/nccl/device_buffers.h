// Streams of the GPU emulator that a test's ranks share, for tests that need more than buffers.h.
#pragma once

#include <functional>
#include <future>

#include "tests/executor/current_host_device.h"
#include "tests/nccl/buffers.h"

namespace tutti::test {

inline HostStream& host_stream(cudaStream_t stream) { return current_host_device().stream_of(stream); }

// Blocks later work in a stream until open().
class StreamGate {
 public:
  explicit StreamGate(cudaStream_t stream) {
    (void)host_stream(stream).put([opened = opened_.get_future().share()] {
      opened.wait();
      return Status();
    });
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

// Enqueues work in a stream.
inline void put(cudaStream_t stream, const std::function<void()>& work) {
  (void)host_stream(stream).put([work] {
    work();
    return Status();
  });
}

}  // namespace tutti::test
