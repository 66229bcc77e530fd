// Every algorithm of the catalogue through the kernel, on a GPU that all ranks share.
#include "tests/executor/catalogue_calls.h"
#include "tests/executor/cuda_engine.h"

namespace tutti::test {
namespace {

class KernelInterpreter : public CatalogueCalls {
 protected:
  void run_all(Rank ranks, CudaEngine& engine) {
    const Rank root = has_root(GetParam().collective) ? static_cast<Rank>(random_() % ranks) : 0;
    if (!emit(ranks, root)) return;
    test_call_.engine = &engine;
    for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
      test_call_.protocol = protocol;
      for (const TestCallShape& shape : shapes()) ASSERT_NO_FATAL_FAILURE(run(shape));
    }
  }
};

TEST_P(KernelInterpreter, ComputesCorrectResults_InOneLaunch) {
  CudaEngine engine(Launches::together, Room::shared_memory);
  for (const Rank ranks : {2U, 4U, 5U, 6U, 7U, 8U}) ASSERT_NO_FATAL_FAILURE(run_all(ranks, engine));
}

// A separate test, so that a tool that slows each call a hundredfold can run only a few calls.
TEST_P(KernelInterpreter, ComputesCorrectResults_WithThreeRanks) {
  CudaEngine engine(Launches::together, Room::shared_memory);
  ASSERT_NO_FATAL_FAILURE(run_all(3, engine));
}

TEST_P(KernelInterpreter, ComputesCorrectResults_InSeparateStreams) {
  CudaEngine engine(Launches::apart, Room::shared_memory);
  for (const Rank ranks : {2U, 5U, 8U}) ASSERT_NO_FATAL_FAILURE(run_all(ranks, engine));
}

TEST_P(KernelInterpreter, ComputesCorrectResults_WithProgramsInGlobalMemory) {
  CudaEngine engine(Launches::together, Room::workspace);
  ASSERT_NO_FATAL_FAILURE(run_all(3, engine));
}

INSTANTIATE_TEST_SUITE_P(Catalogue, KernelInterpreter, testing::ValuesIn(cases::flat_entries()), cases::title_of);

}  // namespace
}  // namespace tutti::test
