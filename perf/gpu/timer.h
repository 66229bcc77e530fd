// Time of work in a stream that is enqueued call by call or as a graph.
#pragma once

#include <cuda_runtime.h>

#include <functional>

namespace perf {

// Enqueues one call.
using Enqueue = std::function<void(cudaStream_t)>;

class Timer {
 public:
  Timer();
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  cudaStream_t stream() const { return stream_; }
  void synchronize() const;

  // Microseconds per call: the median of several runs. A run of eager_us() has as many calls as take some milliseconds.
  double eager_us(const Enqueue& call) const;
  double graph_us(const Enqueue& call) const;
  // Microseconds that the calling thread needs to enqueue a call while the stream has space.
  double enqueue_us(const Enqueue& call) const;

 private:
  double run_us(const std::function<void()>& run, int calls) const;

  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace perf
