// Ranks that wait for each other, one of them in a send or recv and the others in a collective.
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

// Rank 0 has called the collective, so it will never make the other half of rank 1's message.
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

// The others wait in the collective for as long as two ranks exchange messages.
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

// Rank 0 is in the collective while its message is still on its way to rank 1, which waits for the message.
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

// The root of a broadcast waits for no rank while the slots of its lanes are free. So it sends its message in time,
// although the receiver calls the broadcast after the recv.
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
    TUTTI_CHECK_OK(broadcast());  // Connects the lanes.
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
