// Every algorithm of the catalogue through the interpreter that ranks run, with numbers.
#include "tests/executor/catalogue_calls.h"
#include "tests/executor/host_thread_block.h"
#include "tests/executor/turns_engine.h"

namespace tutti::test {
namespace {

class Interpreters : public CatalogueCalls {};

TEST_P(Interpreters, EndWithExactlyTheRightNumbers) {
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

class ThreadBlocks : public CatalogueCalls {};

// The same by what a kernel does: several workers a channel, over an image of the plan.
TEST_P(ThreadBlocks, EndWithExactlyTheRightNumbers) {
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

// Whatever they wait for, they stop there and are taken up again.
TEST_P(ThreadBlocks, EndWithExactlyTheRightNumbersOneRankAtATime) {
  for (const Rank ranks : {2U, 3U}) {
    const Rank root = has_root(GetParam().collective) ? static_cast<Rank>(random_() % ranks) : 0;
    if (!emit(ranks, root)) continue;
    TurnsEngine engine(4 - ranks);
    test_call_.engine = &engine;
    for (const Protocol protocol : {Protocol::simple, Protocol::ll}) {
      test_call_.protocol = protocol;
      for (const TestCallShape& shape : shapes()) ASSERT_NO_FATAL_FAILURE(run(shape));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, ThreadBlocks, testing::ValuesIn(cases::flat_entries()), cases::title_of);

class FormsSeen : public CatalogueCalls {};

// Of the two, one goes there and back, the other both ways at once.
TEST_P(FormsSeen, AreAllOnBothProtocols) {
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

INSTANTIATE_TEST_SUITE_P(Catalogue, FormsSeen,
                         testing::Values(cases::Entry{Collective::all_reduce, find(Collective::all_reduce, "one_shot")},
                                         cases::Entry{Collective::all_reduce,
                                                      find(Collective::all_reduce, "two_shot")}),
                         cases::title_of);

INSTANTIATE_TEST_SUITE_P(Catalogue, Interpreters, testing::ValuesIn(cases::flat_entries()), cases::title_of);

}  // namespace
}  // namespace tutti::test
