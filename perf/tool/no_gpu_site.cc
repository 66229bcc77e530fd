// Replaces gpu_site.cc in builds without CUDA.
#include "perf/tool/fail.h"
#include "perf/tool/site.h"

namespace perf {

std::unique_ptr<Site> gpu_site(int) {
  fail("--memory cuda: this build has no CUDA: build with the preset cuda, on a machine with the CUDA toolkit");
}

std::unique_ptr<Replay> capture(const std::vector<Site*>&, const std::function<void()>&) {
  fail("--cudagraph: this build has no CUDA");
}

}  // namespace perf
