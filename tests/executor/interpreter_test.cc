// Every algorithm of the catalogue with the interpreter that ranks run, with numbers.
#include "tests/executor/catalogue_calls.h"
#include "tests/executor/host_thread_block.h"
#include "tests/executor/time_sliced_engine.h"

namespace tutti::test {
namespace {

class InterpreterTest : public CatalogueCalls {};

TEST_P(InterpreterTest, ComputesExactResults) {
  for (const Rank ranks : {2U, 3U, 5U, 8U}) {
    const Rank root = has_root(GetParam().collective) ? static_cast<Rank>(random_() % ranks) : 0;
    if (!emit(ranks, root)) continue;
    for (const Protocol protocol : {Protocol::simple, Protocol::ll}) {
      test_call_.protocol = protocol;
      for (const TestCallShape& shape : shapes()) {
        ASSERT_NO_FATAL_FAILURE(run(shape));
      }
    }
  }
}

class ThreadBlockInterpreter : public CatalogueCalls {};

// Runs the kernel's code: several threads per channel, and an image of the plan.
TEST_P(ThreadBlockInterpreter, ComputesExactResults) {
  for (const Rank ranks : {2U, 3U}) {
    const Rank root = has_root(GetParam().collective) ? static_cast<Rank>(random_() % ranks) : 0;
    if (!emit(ranks, root)) continue;
    HostEngine engine(4 - ranks);
    test_call_.engine = &engine;
    for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
      test_call_.protocol = protocol;
      for (const TestCallShape& shape : shapes()) ASSERT_NO_FATAL_FAILURE(run(shape));
    }
  }
}

// Thread blocks return wherever they would wait, and are resumed later.
TEST_P(ThreadBlockInterpreter, ComputesExactResults_OneRankAtATime) {
  for (const Rank ranks : {2U, 3U}) {
    const Rank root = has_root(GetParam().collective) ? static_cast<Rank>(random_() % ranks) : 0;
    if (!emit(ranks, root)) continue;
    TimeSlicedEngine engine(4 - ranks);
    test_call_.engine = &engine;
    for (const Protocol protocol : {Protocol::simple, Protocol::ll}) {
      test_call_.protocol = protocol;
      for (const TestCallShape& shape : shapes()) ASSERT_NO_FATAL_FAILURE(run(shape));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, ThreadBlockInterpreter, testing::ValuesIn(cases::flat_entries()), cases::title_of);

class ThreadBlocksOverHosts : public CatalogueCalls {};

TEST_P(ThreadBlocksOverHosts, ComputeExactResults) {
  per_host_ = 3;
  const Rank ranks = 6;  // A chunk of the staging ring fits a slot.
  ASSERT_TRUE(emit(ranks, has_root(GetParam().collective) ? static_cast<Rank>(random_() % ranks) : 0));
  HostEngine engine(2);
  test_call_.engine = &engine;
  for (const TestCallShape& shape : shapes()) ASSERT_NO_FATAL_FAILURE(run(shape));
}

INSTANTIATE_TEST_SUITE_P(Catalogue, ThreadBlocksOverHosts, testing::ValuesIn(cases::entries_over_hosts()),
                         cases::title_of);

// Calls whose lanes have a slot for each LL message of several chunks, so that steps are joined.
class ChunksInSlots : public CatalogueCalls {
 protected:
  void prepare(std::uint32_t chunks) {
    ASSERT_TRUE(emit(8, 0));
    test_call_.protocol = Protocol::ll;
    test_call_.forms = Forms::one_way;
    test_call_.straight = true;
    test_call_.granule = kGranule;
    test_call_.operations = 5;
    test_call_.loop = {.chunks = chunks, .skew = 1, .order = StageOrder::earliest_first, .slots = 4};
    test_call_.count = test_call_.plans[0][0].shape.units * chunks * kGranule;
    const auto proof = verify(test_call_.plans[0], test_call_.loop);
    ASSERT_TRUE(proof.ok() && suffices(proof.value(), test_call_.loop));
  }
};

// One rank runs only while no other can. The others run ahead into later calls.
TEST_P(ChunksInSlots, ComputeExactResults_BesideSlowRank) {
  for (const std::uint32_t chunks : {2U, 4U}) {
    ASSERT_NO_FATAL_FAILURE(prepare(chunks));
    for (const Rank slow : {0U, 5U}) {
      TimeSlicedEngine engine(1, slow);
      test_call_.engine = &engine;
      ASSERT_EQ(ranks_.run(test_call_), "") << chunks << " chunks, rank " << slow << " is slow";
    }
  }
}

TEST_P(ChunksInSlots, ComputeExactResults_WithThreadsOfEachRank) {
  HostEngine engine(2);
  for (const std::uint32_t chunks : {2U, 4U}) {
    ASSERT_NO_FATAL_FAILURE(prepare(chunks));
    test_call_.engine = &engine;
    ASSERT_EQ(ranks_.run(test_call_), "") << chunks << " chunks";
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, ChunksInSlots,
                         testing::Values(cases::Entry{Collective::all_reduce, find(Collective::all_reduce, "two_shot")},
                                         cases::Entry{Collective::all_gather, find(Collective::all_gather, "direct")},
                                         cases::Entry{Collective::all_to_all, find(Collective::all_to_all, "direct")}),
                         cases::title_of);

class LaneForms : public CatalogueCalls {};

// One algorithm uses round trips, the other uses both directions of a lane at once.
TEST_P(LaneForms, AreUsedWithBothProtocols) {
  sample_ = OneOf(1);  // Also in slow builds: a sample may leave out a form.
  for (const Protocol protocol : {Protocol::simple, Protocol::ll}) {
    ASSERT_TRUE(emit(2, 0));
    test_call_.protocol = protocol;
    for (const TestCallShape& shape : shapes()) run(shape);
    const LaneForm form =
        GetParam().algorithm->name() == std::string("one_shot") ? LaneForm::swap : LaneForm::round_trip;
    EXPECT_GT(ranks_.lanes(form, protocol), 0U);
    EXPECT_GT(ranks_.lanes(LaneForm::one_way, protocol), 0U);
  }
  EXPECT_GT(ranks_.brief_runs(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, LaneForms,
                         testing::Values(cases::Entry{Collective::all_reduce, find(Collective::all_reduce, "one_shot")},
                                         cases::Entry{Collective::all_reduce,
                                                      find(Collective::all_reduce, "two_shot")}),
                         cases::title_of);

INSTANTIATE_TEST_SUITE_P(Catalogue, InterpreterTest, testing::ValuesIn(cases::flat_entries()), cases::title_of);

}  // namespace
}  // namespace tutti::test
