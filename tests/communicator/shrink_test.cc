// Communicator::shrink() among threads of one process.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <random>

#include "src/base/atomic.h"
#include "src/communicator/group.h"
#include "tests/communicator/calls.h"
#include "tests/communicator/ranks.h"

namespace tutti::test {
namespace {

using List = std::vector<Rank>;

bool contains(const List& list, Rank rank) { return std::find(list.begin(), list.end(), rank) != list.end(); }

CommunicatorOptions waiting(const Communicator& communicator, std::int64_t init_timeout_ms) {
  CommunicatorOptions options = communicator.options();
  options.init_timeout_ms = init_timeout_ms;
  return options;
}

// All-reduces the number of each rank in the parent. Returns an error unless the sum is as expected.
Status expect_sum(Communicator& part, Rank self, Rank expected) {
  std::vector<float> buffer(30'000, static_cast<float>(self));
  TUTTI_CHECK_OK(part.run(all_reduce(buffer)));
  return buffer == std::vector<float>(buffer.size(), static_cast<float>(expected)) ? Status()
                                                                                   : internal_error("a wrong sum");
}

// Shrinks the communicator and runs an all-reduce, unless this rank is excluded.
Status go_on(Communicator& communicator, const List& excluded) {
  if (contains(excluded, communicator.rank())) return {};
  const auto part = TUTTI_TRY(communicator.shrink(excluded, communicator.options()));
  Rank sum = 0, place = 0;
  for (Rank rank = 0; rank < communicator.ranks(); ++rank) {
    if (contains(excluded, rank)) continue;
    sum += rank;
    if (rank < communicator.rank()) ++place;
  }
  if (part->rank() != place || part->ranks() != communicator.ranks() - excluded.size())
    return internal_error("rank " + std::to_string(communicator.rank()) + " is misplaced");
  return expect_sum(*part, communicator.rank(), sum);
}

void expect_ok(const std::vector<Status>& statuses) {
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

void expect_words(const Status& status, Code code, const std::vector<std::string>& words) {
  EXPECT_EQ(status.code(), code) << status.message();
  for (const std::string& word : words) EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
}

TEST(Shrink, KeepsOrderAndParent) {
  Communicators ranks = make_ranks(5);
  for (const List& excluded : {List{1, 3}, List{0}, List{4}, List{}, List{0, 1, 2, 3}}) {
    expect_ok(on_all(ranks, [&](Communicator& communicator) { return go_on(communicator, excluded); }));
    expect_ok(on_all(ranks, [](Communicator& whole) { return expect_sum(whole, whole.rank(), 10); }));
  }
}

TEST(Shrink, NamesNewCommunicatorAfterParent) {
  CommunicatorOptions options;
  options.name = "grid";
  Communicators ranks = make_ranks(3, options);
  const auto statuses = on_all(ranks, [](Communicator& communicator) -> Status {
    if (communicator.rank() == 1) return {};
    const auto part = TUTTI_TRY(communicator.shrink({1}, communicator.options()));
    return invalid_usage(part->options().name);
  });
  EXPECT_EQ(statuses[0].message(), "grid (2 of 3 ranks)");
  EXPECT_EQ(statuses[2].message(), "grid (2 of 3 ranks)");
}

// A call times out because one rank does not make it, when lanes and their addresses are partly exchanged. The other
// ranks must still be able to shrink and call.
TEST(Shrink, Succeeds_AfterFailure) {
  for (const Rank culprit : {0U, 1U, 3U}) {
    CommunicatorOptions options;
    Communicators ranks = make_ranks(4, options);
    const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
      if (communicator.rank() == culprit) return {};
      std::vector<float> buffer(100'000);
      CommunicatorOptions short_timeout = communicator.options();
      short_timeout.timeout_ms = 20;
      const Status failure = communicator.run(all_reduce(buffer), &short_timeout);
      if (failure.code() != Code::timeout) return internal_error("not reported: " + failure.message());
      communicator.abort();  // A second failure. It must not end the shrink of a peer.
      return go_on(communicator, {culprit});
    });
    expect_ok(statuses);
    EXPECT_EQ(ranks[culprit]->failure().code(), Code::timeout);
  }
}

TEST(Shrink, CanBeRepeated) {
  Communicators ranks = make_ranks(5);
  std::barrier<> round(5);  // Ensures that an abort does not disturb calls of other ranks.
  expect_ok(on_all(ranks, [&](Communicator& communicator) -> Status {
    Communicator* parent = &communicator;
    std::unique_ptr<Communicator> part;
    for (Rank left = 5; left > 1; --left) {  // Excludes rank 1 of the remaining ranks.
      if (parent->rank() == 1) return round.arrive_and_drop(), Status();
      auto next = TUTTI_TRY(parent->shrink({1}, parent->options()));
      if (left % 2 == 0) parent->abort();
      TUTTI_CHECK_OK(expect_sum(*next, next->rank(), (left - 1) * (left - 2) / 2));
      round.arrive_and_wait();
      part = std::move(next);
      parent = part.get();
    }
    return {};
  }));
}

TEST(Shrink, Succeeds_OnSplitCommunicator) {
  Communicators ranks = make_ranks(6);
  expect_ok(on_all(ranks, [](Communicator& communicator) -> Status {
    const auto row =
        TUTTI_TRY(communicator.split(static_cast<int>(communicator.rank() % 2), 0, communicator.options()));
    if (row->rank() == 2) return {};
    return go_on(*row, {2});
  }));
}

// Rank 0 starts a recv, and rank 1 reads the frame with its lane during the shrink. The frame must not be lost, or the
// message would never arrive.
TEST(Shrink, ProcessesFramesSentBeforeIt) {
  Communicators ranks = make_ranks(3);
  expect_ok(on_all(ranks, [](Communicator& communicator) -> Status {
    if (communicator.rank() == 2) return {};
    std::vector<int> buffer(100, communicator.rank() == 0 ? 0 : 7);
    std::vector<std::unique_ptr<Operation>> recv;
    if (communicator.rank() == 0) {
      recv.push_back(TUTTI_TRY(communicator.start(message(Kind::recv, 1, buffer))));
      (void)TUTTI_TRY(recv[0]->advance());
    }
    TUTTI_CHECK_OK(go_on(communicator, {2}));
    if (communicator.rank() == 1) return communicator.run(message(Kind::send, 0, buffer));
    TUTTI_CHECK_OK(drive(recv));
    return buffer == std::vector<int>(100, 7) ? Status() : internal_error("another message arrived");
  }));
}

TEST(Shrink, ReportsBothListsOnAllRanks_WhenTheyDiffer) {
  Communicators ranks = make_ranks(4);
  std::barrier together(3);
  for (const Rank odd : {0U, 1U, 2U}) {
    const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
      if (communicator.rank() == 3) return {};
      const List list = communicator.rank() == odd ? List{} : List{3};
      together.arrive_and_wait();
      // The timeout ends the wait of a rank that calls after the others have left.
      return communicator.shrink(list, waiting(communicator, 500)).status();
    });
    for (Rank rank = 0; rank < 3; ++rank)
      expect_words(statuses[rank], Code::invalid_usage,
                   {"rank " + std::to_string(odd) + " excludes no rank", " excludes rank 3"});
    expect_ok(on_all(ranks, [&](Communicator& communicator) { return go_on(communicator, {3}); }));
  }
  expect_ok(on_all(ranks, [](Communicator& communicator) { return communicator.failure(); }));
}

// Rank 2 waits for rank 1, which does not call. Rank 0, which rank 2 excludes, finds the disagreement.
TEST(Shrink, ReportsDisagreementWithExcludedRank) {
  Communicators ranks = make_ranks(3);
  std::barrier together(2);
  const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
    if (communicator.rank() == 1) return {};
    together.arrive_and_wait();
    return communicator.shrink({communicator.rank() == 0 ? 1U : 0U}, waiting(communicator, 2000)).status();
  });
  for (const Rank rank : {0U, 2U})
    expect_words(statuses[rank], Code::invalid_usage, {"rank 0 excludes rank 1, and rank 2 excludes rank 0"});
  expect_words(statuses[2], Code::invalid_usage, {"rank 2 waited 2 s for rank 1", "; rank 0 gave up before: "});
}

// The excluded rank calls after the others have completed. It must receive their reason in addition to its timeout.
TEST(Shrink, ReportsExclusion_ToExcludedRank) {
  Communicators ranks = make_ranks(3);
  expect_ok(on_all(ranks, [](Communicator& communicator) { return go_on(communicator, {2}); }));
  const Status late = ranks[2]->shrink({}, waiting(*ranks[2], 20)).status();
  expect_words(late, Code::remote, {"waited 20 ms for ranks 0, 1", "rank 0 continued without rank 2"});
  expect_ok(on_all(ranks, [](Communicator& communicator) { return go_on(communicator, {1}); }));
}

TEST(Shrink, NamesMissingRanks_AndCanBeRetried) {
  Communicators ranks = make_ranks(5);
  std::barrier together(2);
  const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
    if (communicator.rank() != 0 && communicator.rank() != 2) return {};
    together.arrive_and_wait();
    return communicator.shrink({3}, waiting(communicator, 1000)).status();
  });
  for (const Rank rank : {0U, 2U}) expect_words(statuses[rank], Code::timeout, {"for ranks 1, 4 to join the shrink"});
  expect_ok(on_all(ranks, [](Communicator& communicator) { return go_on(communicator, {3}); }));
}

TEST(Shrink, ReportsDestroyedRank) {
  Communicators ranks = make_ranks(3);
  ranks[1]->abort();
  ranks[1].reset();
  expect_words(ranks[0]->shrink({2}, ranks[0]->options()).status(), Code::invalid_usage,
               {"rank 1 has destroyed its communicator"});
}

// Rank 0 aborts the parent, or sets the abort word of the new communicator. Its peers must receive the reason, even if
// they call later.
TEST(Shrink, EndsByAbort) {
  for (const bool by_parent : {true, false}) {
    Communicators ranks = make_ranks(3);
    std::atomic<bool> done = false;
    std::uint32_t word = 0;
    const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
      if (communicator.rank() == 2) {  // Does not call. Rank 0 has no deadline.
        if (!by_parent) store_release(&word, 1U);
        while (by_parent && !done) ranks[0]->abort();
        return {};
      }
      CommunicatorOptions options = waiting(communicator, 5000);
      if (communicator.rank() == 0) {
        options.init_timeout_ms = 0;
        options.abort = &word;
      }
      const Status status = communicator.shrink({}, options).status();
      done = true;
      return Status(status.code(), status.message());
    });
    for (const Rank rank : {0U, 1U}) expect_words(statuses[rank], Code::aborted, {"rank 0 aborted the shrink"});
  }
}

// Ranks make random attempts with different lists, which fail. A later shrink with the same list on all ranks must
// succeed.
TEST(Shrink, Succeeds_AfterAnyFailedAttempts) {
  constexpr std::uint32_t seed = 20261121;
  std::mt19937 random(seed);
  Communicators ranks = make_ranks(4);
  const std::vector<List> lists = {{}, {3}, {0}, {1, 2}, {2}};
  for (int round = 0; round < 60; ++round) {
    std::vector<std::vector<List>> attempts(ranks.size());
    for (Rank rank = 0; rank < ranks.size(); ++rank) {
      for (std::uint32_t count = random() % 3; count > 0; --count) {
        const List& list = lists[random() % lists.size()];
        if (!contains(list, rank)) attempts[rank].push_back(list);
      }
    }
    (void)on_all(ranks, [&](Communicator& communicator) -> Status {
      for (const List& list : attempts[communicator.rank()])
        (void)communicator.shrink(list, waiting(communicator, 3)).status().ok();
      return {};
    });
    const List& agreed = lists[random() % lists.size()];
    expect_ok(on_all(ranks, [&](Communicator& communicator) { return go_on(communicator, agreed); }));
    if (HasFailure()) FAIL() << "seed " << seed << ", round " << round;
  }
}

}  // namespace
}  // namespace tutti::test
