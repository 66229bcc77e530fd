// What Pattern does, on a GPU: a gigabyte takes the host half a minute.
#pragma once

#include <cuda_runtime.h>

#include "perf/tool/pattern.h"

namespace perf {

class GpuPattern {
 public:
  // Uses the thread's current device, which must be the same in all calls. All memory is allocated here, because
  // later a call may be waiting on the device.
  explicit GpuPattern(cudaStream_t stream);
  ~GpuPattern() { cudaFree(words_); }
  GpuPattern(const GpuPattern&) = delete;
  GpuPattern& operator=(const GpuPattern&) = delete;

  // In the stream, and done when they return. Elements 0, 1, ... of `rank`'s input.
  void fill(void* memory, const Pattern& pattern, int rank, std::size_t count);
  // How many elements of an output are wrong.
  std::uint64_t wrong(const void* memory, const Pattern& pattern, const Output& output);

 private:
  void begin(const Pattern& pattern);
  std::uint64_t end();  // Returns the count.

  const cudaStream_t stream_;
  std::uint64_t* words_ = nullptr;  // A counter, and how the values of the pattern look.
};

}  // namespace perf
