// Every algorithm, protocol, type and reduction with the kernel's code, on threads of the host.
#include "tests/executor/sweep.h"

#include "tests/executor/host_thread_block.h"
#include "tests/executor/one_thread_engine.h"

namespace tutti::test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint32_t kShare = 3;  // A part of the sweep, since sanitizers slow it about tenfold.
#else
constexpr std::uint32_t kShare = 1;
#endif

class BlockSweep : public Sweep {};

TEST_P(BlockSweep, MatchesCpuBits) {
  OneThreadEngine engine;
  for (const Rank ranks : {1U, 2U, 4U, 8U}) ASSERT_NO_FATAL_FAILURE(sweep(ranks, engine, kShare));
}

// Runs few shapes: waits between threads take long on a busy machine.
TEST_P(BlockSweep, MatchesCpuBits_WithSeveralThreads) {
  HostEngine engine(2);
  ASSERT_NO_FATAL_FAILURE(sweep(2, engine, 64));
}

class BlockSweepOverHosts : public Sweep {};

TEST_P(BlockSweepOverHosts, MatchesCpuBits) {
  OneThreadEngine engine;
  per_host_ = 3;
  ASSERT_NO_FATAL_FAILURE(sweep(6, engine, kShare));
}

INSTANTIATE_TEST_SUITE_P(Catalogue, BlockSweepOverHosts, testing::ValuesIn(cases::entries_over_hosts()),
                         cases::title_of);

INSTANTIATE_TEST_SUITE_P(Catalogue, BlockSweep, testing::ValuesIn(cases::flat_entries()), cases::title_of);

}  // namespace
}  // namespace tutti::test
