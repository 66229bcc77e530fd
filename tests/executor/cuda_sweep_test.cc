// Every algorithm, protocol, type and reduction through the kernel, on a GPU that all ranks share.
#include <algorithm>

#include "tests/base/case_sampling.h"
#include "tests/executor/cuda_engine.h"
#include "tests/executor/sweep.h"

namespace tutti::test {
namespace {

class KernelSweep : public Sweep {};

TEST_P(KernelSweep, MatchesCpuBits) {
  CudaEngine engine(Launches::together, Room::shared_memory);
  for (const Rank ranks : {1U, 2U, 4U, 8U})
    ASSERT_NO_FATAL_FAILURE(sweep(ranks, engine, std::max(requested_sample(), 1U)));
}

INSTANTIATE_TEST_SUITE_P(Catalogue, KernelSweep, testing::ValuesIn(cases::flat_entries()), cases::title_of);

}  // namespace
}  // namespace tutti::test
