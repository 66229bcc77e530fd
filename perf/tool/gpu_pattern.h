// GPU version of Pattern. The host needs half a minute for a gigabyte.
#pragma once

#include <cuda_runtime.h>

#include "perf/tool/pattern.h"

namespace perf {

class GpuPattern {
 public:
  // Uses the thread's current device, which must stay current for all calls. Allocates all its memory here, since a
  // later cudaMalloc could wait for a blocked collective.
  explicit GpuPattern(cudaStream_t stream);
  ~GpuPattern() { cudaFree(words_); }
  GpuPattern(const GpuPattern&) = delete;
  GpuPattern& operator=(const GpuPattern&) = delete;

  // Fills elements 0, 1, ... of `rank`'s input in the stream, and waits until it is done.
  void fill(void* memory, const Pattern& pattern, int rank, std::size_t count);
  // Returns the number of wrong output elements.
  std::uint64_t wrong(const void* memory, const Pattern& pattern, const Output& output);

 private:
  void begin(const Pattern& pattern);
  std::uint64_t end();  // Returns the counter's value.

  const cudaStream_t stream_;
  std::uint64_t* words_ = nullptr;  // A counter, followed by the bits of the pattern's values.
};

}  // namespace perf
