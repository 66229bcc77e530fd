// Replaces gpu_backend.cc in builds without CUDA.
#include "perf/tool/fail.h"
#include "perf/tool/memory_backend.h"

namespace perf {

std::unique_ptr<MemoryBackend> gpu_backend(int, GpuAllocator) {
  fail("--memory cuda: this build has no CUDA: build with the preset cuda, on a machine with the CUDA toolkit");
}

std::unique_ptr<Replay> capture(const std::vector<MemoryBackend*>&, const std::function<void()>&) {
  fail("--cudagraph: this build has no CUDA");
}

}  // namespace perf
