// Ranks that wait for each other, some in a message and some in a collective.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/communicator/group.h"
#include "tests/communicator/calls.h"
#include "tests/communicator/ranks.h"

namespace tutti::test {
namespace {

bool has(const Status& status, const std::string& part) { return status.message().find(part) != std::string::npos; }

struct Case {
  Rank ranks;
  Kind kind;
  std::size_t count;
};

class Deadlock : public ::testing::TestWithParam<Case> {};

// Rank 1 exchanges a message with rank 0, which has called a collective with the other ranks. Rank 0 will never call
// the other half of the message, and all ranks must report this.
TEST_P(Deadlock, IsReportedToAllRanks_WhenOneIsInMessage) {
  const auto [count_of_ranks, kind, count] = GetParam();
  Communicators ranks = make_ranks(count_of_ranks);
  const auto statuses = on_all(ranks, [&, kind = kind, count = count](Communicator& communicator) {
    std::vector<float> values(count);
    std::vector<int> numbers(count);
    if (communicator.rank() != 1) return communicator.run(all_reduce(values));
    return communicator.run(message(kind, 0, numbers));
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::invalid_usage) << status.message();
    EXPECT_TRUE(has(status, "ranks disagree on collective 1: rank 0 called all_reduce(")) << status.message();
    EXPECT_TRUE(has(status, kind == Kind::send ? "rank 1 called send(" : "rank 1 called recv(")) << status.message();
    EXPECT_TRUE(has(status, "rank 1 waits for rank 0")) << status.message();
  }
}

INSTANTIATE_TEST_SUITE_P(All, Deadlock,
                         ::testing::Values(Case{2, Kind::send, 10}, Case{2, Kind::recv, 10},
                                           Case{2, Kind::send, 1'000'000}, Case{2, Kind::recv, 1'000'000},
                                           Case{3, Kind::send, 10}, Case{3, Kind::recv, 1'000'000},
                                           Case{4, Kind::recv, 10}, Case{5, Kind::send, 1'000'000}));

// After three collectives, rank 1 waits in a group of messages and rank 0 in a collective. Errors must have the number
// of the fourth collective.
TEST(DeadlockAfterCalls, IsReported_WhenGroupOfMessagesWaits) {
  Communicators ranks = make_ranks(2);
  const auto statuses = on_all(ranks, [](Communicator& communicator) -> Status {
    std::vector<float> values(10);
    std::vector<int> sent(10), received(10);
    for (int i = 0; i < 3; ++i) TUTTI_CHECK_OK(communicator.run(all_reduce(values)));
    if (communicator.rank() == 0) return communicator.run(all_reduce(values));
    return run_group({{&communicator, message(Kind::send, 0, sent), communicator.options()},
                      {&communicator, message(Kind::recv, 0, received), communicator.options()}});
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::invalid_usage) << status.message();
    EXPECT_TRUE(has(status, "ranks disagree on collective 4: ")) << status.message();
  }
}

// Ranks 0 and 1 exchange messages while ranks 2 and 3 wait in a collective. This wait is not a deadlock.
TEST(DeadlockFree, LateRanksInCollective_AreNotReported) {
  Communicators ranks = make_ranks(4);
  const auto statuses = on_all(ranks, [](Communicator& communicator) -> Status {
    const Rank self = communicator.rank();
    std::vector<float> values(100);
    std::vector<int> small(100), large(100'000);
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; self < 2 && i < 50; ++i) {
        std::vector<int>& buffer = i % 10 == 0 ? large : small;
        TUTTI_CHECK_OK(communicator.run(
            message((i + static_cast<int>(self)) % 2 == 0 ? Kind::send : Kind::recv, 1 - self, buffer)));
      }
      TUTTI_CHECK_OK(communicator.run(all_reduce(values)));
    }
    return {};
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

// Rank 0 calls the collective while rank 1 still waits for its message, which is in flight. This is not a deadlock.
TEST(DeadlockFree, MessagesSentBeforeCollective_AreNotReported) {
  Communicators ranks = make_ranks(3);
  const auto statuses = on_all(ranks, [](Communicator& communicator) -> Status {
    std::vector<float> values(100);
    std::vector<int> numbers(100);
    for (int round = 0; round < 2000; ++round) {
      if (communicator.rank() == 0) TUTTI_CHECK_OK(communicator.run(message(Kind::send, 1, numbers)));
      if (communicator.rank() == 1) TUTTI_CHECK_OK(communicator.run(message(Kind::recv, 0, numbers)));
      TUTTI_CHECK_OK(communicator.run(all_reduce(values)));
    }
    return {};
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

// The root of a broadcast waits for no rank while its lanes have free slots. It then sends its message, which the other
// rank receives before it calls the broadcast. This is not a deadlock.
TEST(DeadlockFree, CollectivesThatEndWithoutReceiver_AreNotReported) {
  Communicators ranks = make_ranks(2);
  const auto statuses = on_all(ranks, [](Communicator& communicator) -> Status {
    const Rank self = communicator.rank();
    std::vector<float> values(10);
    std::vector<int> numbers(10);
    const auto broadcast = [&] {
      Call call = all_reduce(values);
      call.collective = Collective::broadcast;
      return communicator.run(call);
    };
    const auto exchange = [&] {
      return communicator.run(message(self == 0 ? Kind::send : Kind::recv, 1 - self, numbers));
    };
    TUTTI_CHECK_OK(broadcast());  // Connects the lanes, for which ranks wait.
    for (int round = 0; round < 2000; ++round) {
      TUTTI_CHECK_OK(self == 0 ? broadcast() : exchange());
      TUTTI_CHECK_OK(self == 0 ? exchange() : broadcast());
    }
    return {};
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace tutti::test
