// Transfer and matching of messages.
#include "src/messages/endpoint.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/base/case_sampling.h"
#include "tests/messages/message_endpoints.h"

namespace tutti::test {
namespace {

class Transports : public ::testing::TestWithParam<PartyOptions> {};

TEST_P(Transports, TransferMessagesOfAllSizes_InBothOrders) {
  const Party party(2, GetParam());
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, kLargestEager, kLargestEager + 1, std::size_t{2'000'000}}) {
    const auto late = receive(party[1], 0, 1, count);
    EXPECT_FALSE(late->request->wait(Deadline{0}));
    const auto first = send(party[0], 1, 1, numbers(count));
    EXPECT_EQ(late->outcome(), "ok") << count;
    EXPECT_EQ(first->outcome(), "ok") << count;
    EXPECT_EQ(late->values, first->values) << count;

    const auto second = send(party[1], 0, 2, numbers(count, 7));
    EXPECT_EQ(await_arrival(party[0], 1, 2), count);
    const auto early = receive(party[0], kAnyRank, 2, count);
    EXPECT_EQ(early->outcome(), "ok") << count;
    EXPECT_EQ(second->outcome(), "ok") << count;
    EXPECT_EQ(early->values, second->values) << count;
    EXPECT_EQ(early->request->info().peer, 1U);
    EXPECT_EQ(early->request->info().count, count);
  }
}

INSTANTIATE_TEST_SUITE_P(Links, Transports,
                         ::testing::Values(PartyOptions{}, PartyOptions{true, Protection::none},
                                           PartyOptions{true, Protection::checked},
                                           PartyOptions{true, Protection::encrypted}));

TEST(Endpoint, MatchesEqualTagsInOrder_WhenLargeAndSmallMessagesAlternate) {
  const Party party(2);
  std::vector<std::unique_ptr<Transfer>> sends, receives;
  for (std::int32_t i = 0; i < 20; ++i) {
    const std::size_t count = i % 2 == 0 ? kLargestEager + 1 : 10;
    sends.push_back(send(party[0], 1, 3, numbers(count, 1000 * i)));
  }
  for (std::int32_t i = 0; i < 20; ++i) receives.push_back(receive(party[1], 0, 3, sends[i]->values.size()));
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(receives[i]->outcome(), "ok");
    EXPECT_EQ(receives[i]->values, sends[i]->values) << i;
  }
}

TEST(Endpoint, DeliversByTag_WhenReceivesAreInReverseOrder) {
  const Party party(2);
  std::vector<std::unique_ptr<Transfer>> sends;
  for (std::int32_t tag = 0; tag < 10; ++tag)
    sends.push_back(send(party[0], 1, static_cast<std::uint64_t>(tag), numbers(tag % 2 == 0 ? 5 : 100'000, tag)));
  for (std::uint64_t tag = 10; tag-- > 0;) {
    const auto received = receive(party[1], 0, tag, sends[tag]->values.size());
    EXPECT_EQ(received->outcome(), "ok");
    EXPECT_EQ(received->values, sends[tag]->values) << tag;
  }
}

TEST(Endpoint, ReceivesEachMessageOnce_FromAnyRank) {
  constexpr Rank kSenders = 3;
  const Party party(kSenders + 1);
  std::vector<std::unique_ptr<Transfer>> receives, sends;
  for (int i = 0; i < 10; ++i) receives.push_back(receive(party[0], kAnyRank, 9, 4));
  for (int i = 0; i < 20; ++i) {
    for (Rank rank = 1; rank <= kSenders; ++rank)
      sends.push_back(send(party[rank], 0, 9, numbers(4, static_cast<std::int32_t>(100 * rank) + i)));
  }
  for (int i = 10; i < 20 * static_cast<int>(kSenders); ++i) receives.push_back(receive(party[0], kAnyRank, 9, 4));
  std::vector<std::int32_t> next(kSenders + 1);
  for (const auto& received : receives) {
    ASSERT_EQ(received->outcome(), "ok");
    const Rank source = received->request->info().peer;
    EXPECT_EQ(received->values, numbers(4, static_cast<std::int32_t>(100 * source) + next[source]++));
  }
  EXPECT_EQ(next, (std::vector<std::int32_t>{0, 20, 20, 20}));
}

TEST(Endpoint, TransfersMessagesToSelf) {
  const Party party(1);
  for (const std::size_t count : {std::size_t{0}, std::size_t{3}, kLargestEager, kLargestEager + 1}) {
    const auto posted = receive(party[0], kAnyRank, 1, count);
    const auto first = send(party[0], 0, 1, numbers(count));
    EXPECT_EQ(posted->outcome(), "ok");
    EXPECT_EQ(posted->values, first->values);
    const auto second = send(party[0], 0, 2, numbers(count, 5));
    EXPECT_EQ(second->request->complete(), count <= kLargestEager);
    const auto late = receive(party[0], 0, 2, count);
    EXPECT_EQ(late->outcome(), "ok");
    EXPECT_EQ(late->values, second->values);
    EXPECT_EQ(second->outcome(), "ok");
  }
}

// Unreceived messages beyond the window wait at the sender, and keep their order.
TEST(Endpoint, KeepsOrder_WhenUnreceivedMessagesExceedWindow) {
  constexpr std::size_t kMessages = 3 * kEagerWindow / kMaxEagerBytes;
  const Party party(2);
  std::vector<std::unique_ptr<Transfer>> sends;
  for (std::size_t i = 0; i < kMessages; ++i)
    sends.push_back(send(party[0], 1, 4, numbers(kLargestEager, static_cast<std::int32_t>(i))));
  EXPECT_FALSE(sends.back()->request->wait(Deadline::after_ms(1)));
  for (int round = 0; round < 2; ++round) {  // The window is free again in the second round.
    for (std::size_t i = 0; i < kMessages; ++i) {
      const auto received = receive(party[1], 0, 4, kLargestEager);
      ASSERT_EQ(received->outcome(), "ok");
      ASSERT_EQ(received->values, sends[i]->values) << i;
    }
    for (const auto& sent : sends) ASSERT_EQ(sent->outcome(), "ok");
    if (round == 0) {
      for (auto& sent : sends) sent = send(party[0], 1, 4, sent->values);
    }
  }
  EXPECT_EQ(send(party[0], 1, 5, numbers(kLargestEager))->outcome(), "ok");  // Eager: complete without a receive.
}

TEST(Endpoint, TransfersAllMessages_WhenThreadsOfAllRanksSendAtOnce) {
  constexpr int kThreads = 3, kRounds = kSlowMotion ? 20 : 100;
  const Party party(2);
  const auto seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < 2; ++rank) {
    for (std::uint64_t tag = 0; tag < kThreads; ++tag) {
      threads.emplace_back([&party, rank, tag, seed] {
        std::mt19937 random(static_cast<std::uint32_t>(seed + tag));  // The same sizes on both ranks.
        for (std::int32_t round = 0; round < kRounds; ++round) {
          const std::size_t count = random() % 4 == 0 ? random() % 100'000 : random() % 100;
          const auto received = receive(party[rank], 1 - rank, tag, count);
          const auto sent = send(party[rank], 1 - rank, tag, numbers(count, round));
          ASSERT_EQ(received->outcome(), "ok");
          ASSERT_EQ(received->values, sent->values);
          ASSERT_EQ(sent->outcome(), "ok");
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Endpoint, RefusesMessage_WhenCountDiffers) {
  const Party party(2);
  for (const std::size_t count : {std::size_t{10}, kLargestEager + 1}) {
    const std::string text = "rank 1 called irecv(20 int32, from rank 0, tag 6), but rank 0 called isend(" +
                             std::to_string(count) +
                             " int32, to rank 1, tag 6) on test: counts and types must be equal";
    const auto posted = receive(party[1], 0, 6, 20);
    const auto first = send(party[0], 1, 6, numbers(count));
    EXPECT_EQ(posted->outcome(), text);
    EXPECT_EQ(posted->request->status().code(), Code::invalid_usage);
    EXPECT_EQ(first->outcome(), count <= kLargestEager ? "ok" : text);
    const auto second = send(party[0], 1, 6, numbers(count));
    await_arrival(party[1], 0, 6);
    EXPECT_EQ(receive(party[1], kAnyRank, 6, 20)->outcome(), text);
    EXPECT_EQ(second->outcome(), count <= kLargestEager ? "ok" : text);
    const auto good = receive(party[1], 0, 6, count);
    const auto third = send(party[0], 1, 6, numbers(count, 3));
    EXPECT_EQ(good->outcome(), "ok");
    EXPECT_EQ(good->values, third->values);
  }
}

TEST(Endpoint, RefusesMessage_WhenTypeDiffers) {
  const Party party(1);
  float value = 1;
  const auto sent = send(party[0], 0, 6, numbers(1));
  const RequestPointer received =
      party[0]
          .receive({MessageDirection::receive, 0, 6, 1, DataType::float32, reinterpret_cast<std::byte*>(&value)})
          .value();
  ASSERT_TRUE(received->complete());
  EXPECT_EQ(received->status().message(),
            "rank 0 called irecv(1 float32, from rank 0, tag 6), but rank 0 called isend(1 int32, to rank 0, tag 6) on "
            "test: counts and types must be equal");
}

TEST(Endpoint, CallsBackOnce_BeforeAndAfterCompletion) {
  const Party party(2);
  std::atomic<int> calls = 0;
  const auto count = [&calls](const Status& status) { calls += status.ok() ? 1 : 100; };
  const auto received = receive(party[1], 0, 1, 5);
  TUTTI_ASSERT(received->request->on_completion(count).ok());
  EXPECT_EQ(received->request->on_completion(count).message(),
            "the request has a completion function already: set it only once");
  const auto sent = send(party[0], 1, 1, numbers(5));
  EXPECT_EQ(sent->outcome(), "ok");
  while (calls == 0) std::this_thread::yield();
  TUTTI_ASSERT(sent->request->on_completion(count).ok());
  EXPECT_EQ(calls, 2);
}

TEST(Endpoint, RefusesCallback_AfterRequestIsRetired) {
  const Party party(2);
  const auto received = receive(party[1], 0, 1, 5);
  EXPECT_TRUE(party[1].cancel(*received->request));
  EXPECT_EQ(received->outcome(), "irecv(5 int32, from rank 0, tag 1) was cancelled");
  received->request->retire();
  EXPECT_EQ(received->request->on_completion([](const Status&) { ADD_FAILURE(); }).message(),
            "another thread has destroyed the request");
}

}  // namespace
}  // namespace tutti::test
