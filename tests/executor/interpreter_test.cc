// Every algorithm of the catalogue through the interpreter that ranks run, with numbers.
#include "tests/executor/catalogue_voyages.h"
#include "tests/executor/host_team.h"
#include "tests/executor/turns_engine.h"

namespace tutti::test {
namespace {

class Interpreters : public CatalogueVoyages {};

TEST_P(Interpreters, EndWithExactlyTheRightNumbers) {
  for (const Rank ranks : {2U, 3U, 5U, 8U}) {
    const Rank root = has_root(GetParam().collective) ? static_cast<Rank>(random_() % ranks) : 0;
    if (!emit(ranks, root)) continue;
    for (const Protocol protocol : {Protocol::bulk, Protocol::lines}) {
      voyage_.protocol = protocol;
      for (const VoyageShape& shape : shapes()) {
        ASSERT_NO_FATAL_FAILURE(sail(shape));
      }
    }
  }
}

class Teams : public CatalogueVoyages {};

// The same by what a kernel does: several workers a channel, over an image of the plan.
TEST_P(Teams, EndWithExactlyTheRightNumbers) {
  for (const Rank ranks : {2U, 3U}) {
    const Rank root = has_root(GetParam().collective) ? static_cast<Rank>(random_() % ranks) : 0;
    if (!emit(ranks, root)) continue;
    HostEngine engine(4 - ranks);
    voyage_.engine = &engine;
    for (const Protocol protocol : {Protocol::bulk, Protocol::lines, Protocol::rows}) {
      voyage_.protocol = protocol;
      for (const VoyageShape& shape : shapes()) ASSERT_NO_FATAL_FAILURE(sail(shape));
    }
  }
}

// Whatever they wait for, they stop there and are taken up again.
TEST_P(Teams, EndWithExactlyTheRightNumbersOneRankAtATime) {
  for (const Rank ranks : {2U, 3U}) {
    const Rank root = has_root(GetParam().collective) ? static_cast<Rank>(random_() % ranks) : 0;
    if (!emit(ranks, root)) continue;
    TurnsEngine engine(4 - ranks);
    voyage_.engine = &engine;
    for (const Protocol protocol : {Protocol::bulk, Protocol::lines}) {
      voyage_.protocol = protocol;
      for (const VoyageShape& shape : shapes()) ASSERT_NO_FATAL_FAILURE(sail(shape));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Teams, testing::ValuesIn(cases::flat_entries()), cases::title_of);

class FormsSeen : public CatalogueVoyages {};

// Of the two, one goes there and back, the other both ways at once.
TEST_P(FormsSeen, AreAllOnBothProtocols) {
  for (const Protocol protocol : {Protocol::bulk, Protocol::lines}) {
    ASSERT_TRUE(emit(2, 0));
    voyage_.protocol = protocol;
    for (const VoyageShape& shape : shapes()) sail(shape);
    const LaneForm form =
        GetParam().algorithm->name() == std::string("one_shot") ? LaneForm::swap : LaneForm::round_trip;
    EXPECT_GT(fleet_.lanes(form, protocol), 0U);
    EXPECT_GT(fleet_.lanes(LaneForm::one_way, protocol), 0U);
  }
  EXPECT_GT(fleet_.brief_runs(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, FormsSeen,
                         testing::Values(cases::Entry{Collective::all_reduce, find(Collective::all_reduce, "one_shot")},
                                         cases::Entry{Collective::all_reduce,
                                                      find(Collective::all_reduce, "two_shot")}),
                         cases::title_of);

INSTANTIATE_TEST_SUITE_P(Catalogue, Interpreters, testing::ValuesIn(cases::flat_entries()), cases::title_of);

}  // namespace
}  // namespace tutti::test
