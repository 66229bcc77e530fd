// Sends and receives between ranks on a device.
#include <algorithm>
#include <random>
#include <thread>

#include "tests/communicator/device/device_ranks.h"

namespace tutti::test {
namespace {

constexpr std::uint64_t kMessageSeed = 20261121;

std::int32_t item(Rank from, Rank to, std::uint32_t nth, std::uint64_t i) {
  return static_cast<std::int32_t>(from * 1000003 + to * 10007 + nth * 101 + i);
}

struct Letter {
  Rank from, to;
  std::uint32_t nth;
  std::uint64_t count;
  std::int32_t* sent;
  std::int32_t* received;
};

// Creates messages and checks that they have arrived. Base of the fixtures with and without a parameter.
template <typename Fixture>
class Mail : public Fixture {
 protected:
  Letter write(DeviceRanks& ranks, Rank from, Rank to, std::uint32_t nth, std::uint64_t count) {
    Letter letter{from, to, nth, count, ranks.take<std::int32_t>(count), ranks.take<std::int32_t>(count, -1)};
    for (std::uint64_t i = 0; i < count; ++i) letter.sent[i] = item(from, to, nth, i);
    return letter;
  }
  static DeviceCall half(DeviceRanks& ranks, const Letter& letter, Kind kind) {
    Call call = call_of(Collective::all_reduce, DataType::int32, letter.count, letter.sent, letter.received);
    call.kind = kind;
    call.root = kind == Kind::send ? letter.to : letter.from;
    return ranks.call(kind == Kind::send ? letter.from : letter.to, call);
  }
  static void expect_arrived(const std::vector<Letter>& letters) {
    for (const Letter& letter : letters) {
      for (std::uint64_t i = 0; i < letter.count; ++i)
        ASSERT_EQ(letter.received[i], item(letter.from, letter.to, letter.nth, i))
            << letter.from << " to " << letter.to << ", number " << letter.nth << ", element " << i << " of "
            << letter.count << ", seed " << kMessageSeed;
    }
  }
  std::mt19937_64 random_{kMessageSeed};
};

class DeviceMessages : public Mail<OnDevices> {};
class DeviceMessagesOnFewThreadBlocks : public Mail<testing::Test> {};

// Each rank sends 3 messages to each rank, including itself. Lengths are random, and some are 0. One thread enqueues
// all in one group.
TEST_P(DeviceMessages, ArriveWhole_InGroup) {
  for (const Rank n : {1U, 2U, 4U}) {
    DeviceRanks ranks(*rig_, n);
    std::vector<Letter> letters;
    for (std::uint32_t nth = 0; nth < 3; ++nth) {
      for (Rank from = 0; from < n; ++from) {
        for (Rank to = 0; to < n; ++to) {
          const std::uint64_t lengths[] = {0, 1, 1 + random_() % 1000, 100000 + random_() % 200000};
          letters.push_back(write(ranks, from, to, nth, lengths[random_() % 4]));
        }
      }
    }
    std::vector<std::vector<DeviceCall>> own(n);
    for (const Letter& letter : letters) {
      own[letter.from].push_back(half(ranks, letter, Kind::send));
      own[letter.to].push_back(half(ranks, letter, Kind::recv));
    }
    std::vector<DeviceCall> calls;
    for (auto& each : own) calls.insert(calls.end(), each.begin(), each.end());
    const Status status = enqueue(calls);
    ASSERT_TRUE(status.ok()) << status.message();
    ranks.synchronize();
    ASSERT_NO_FATAL_FAILURE(expect_arrived(letters));
  }
}

// Ranks form a ring, and each rank has a thread. Each of its 20 groups sends to the next rank and receives from the
// previous one.
TEST_P(DeviceMessages, ArriveWhole_WithOneThreadPerRank) {
  constexpr Rank kRanks = 3;
  DeviceRanks ranks(*rig_, kRanks);
  std::vector<Letter> letters;
  for (std::uint32_t nth = 0; nth < 20; ++nth) {
    for (Rank from = 0; from < kRanks; ++from)
      letters.push_back(write(ranks, from, (from + 1) % kRanks, nth, random_() % 40000));
  }
  std::vector<std::thread> threads;
  std::vector<Status> statuses(kRanks);
  for (Rank rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      for (std::size_t i = 0; i < letters.size(); i += kRanks) {
        std::vector<DeviceCall> calls;
        for (std::size_t k = i; k < i + kRanks; ++k) {
          if (letters[k].from == rank) calls.push_back(half(ranks, letters[k], Kind::send));
          if (letters[k].to == rank) calls.push_back(half(ranks, letters[k], Kind::recv));
        }
        if (statuses[rank].ok()) statuses[rank] = enqueue(calls);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
  ranks.synchronize();
  ASSERT_NO_FATAL_FAILURE(expect_arrived(letters));
}

// The device has one thread block per rank, so that a send and a receive of a rank cannot run concurrently. Messages
// between all ranks must not deadlock, whether one thread runs all ranks or each rank has a thread.
TEST_F(DeviceMessagesOnFewThreadBlocks, ArriveWhole) {
  constexpr Rank kRanks = 4;
  const auto rig = host_rig({.thread_blocks = kRanks});
  CommunicatorOptions options;
  options.timeout_ms = 60'000;
  DeviceRanks ranks(*rig, kRanks, options);
  ASSERT_EQ(ranks.backend(0).peers().thread_blocks(), 1U);
  for (const bool threads : {false, true}) {
    std::vector<Letter> letters;
    for (Rank from = 0; from < kRanks; ++from) {
      for (Rank to = 0; to < kRanks; ++to) {
        for (std::uint32_t nth = 0; nth < 2 && to != from; ++nth)
          letters.push_back(write(ranks, from, to, nth, nth == 0 ? 300'000 : 7));
      }
    }
    std::vector<std::vector<DeviceCall>> own(kRanks);
    for (const Letter& letter : letters) {
      own[letter.from].push_back(half(ranks, letter, Kind::send));
      own[letter.to].push_back(half(ranks, letter, Kind::recv));
    }
    std::vector<std::thread> drivers;
    std::vector<DeviceCall> all;
    for (auto& calls : own) {
      std::rotate(calls.begin(), calls.begin() + 2, calls.end());  // Keeps the two messages of a pair together.
      if (threads) drivers.emplace_back([&calls] { EXPECT_TRUE(enqueue(calls).ok()); });
      all.insert(all.end(), calls.begin(), calls.end());
    }
    for (std::thread& driver : drivers) driver.join();
    const Status status = threads ? Status() : enqueue(all);
    ASSERT_TRUE(status.ok()) << status.message();
    ranks.synchronize();
    for (Rank rank = 0; rank < kRanks; ++rank)
      ASSERT_TRUE(ranks[rank].failure().ok()) << ranks[rank].failure().message();
    ASSERT_NO_FATAL_FAILURE(expect_arrived(letters));
  }
}

// Each rank of `dense` sends to three ranks, and `sparse` has two messages: together they need fewer thread blocks than
// both communicators have, but those of `dense` alone need more than it has.
TEST_F(DeviceMessagesOnFewThreadBlocks, FitShareOfEachCommunicator) {
  constexpr Rank kRanks = 4;
  const auto rig = host_rig({.thread_blocks = 16});
  DeviceRanks dense(*rig, kRanks), sparse(*rig, kRanks);
  std::vector<Letter> letters;
  std::vector<DeviceCall> group;
  const auto add = [&](DeviceRanks& ranks, Rank from, Rank to) {
    letters.push_back(write(ranks, from, to, 0, 100));
    for (const Kind kind : {Kind::send, Kind::recv}) group.push_back(half(ranks, letters.back(), kind));
  };
  for (Rank from = 0; from < kRanks; ++from)
    for (const Rank ahead : {0U, 1U, 2U}) add(dense, from, (from + ahead) % kRanks);
  for (const Rank from : {0U, 2U}) add(sparse, from, from + 1);
  const Status status = enqueue(group);
  ASSERT_TRUE(status.ok()) << status.message();
  dense.synchronize();
  sparse.synchronize();
  expect_arrived(letters);
}

TEST_F(DeviceMessagesOnFewThreadBlocks, RejectMessagesToSelf) {
  const auto rig = host_rig({.thread_blocks = 2});
  DeviceRanks ranks(*rig, 2);
  const Letter letter = write(ranks, 1, 1, 0, 100);
  const DeviceCall calls[] = {half(ranks, letter, Kind::send), half(ranks, letter, Kind::recv)};
  const Status status = enqueue(calls);
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_NE(status.message().find("rank 1 cannot send to itself"), std::string::npos) << status.message();
}

TEST_P(DeviceMessages, ReportLengthMismatch) {
  DeviceRanks ranks(*rig_, 2);
  Letter letter = write(ranks, 0, 1, 0, 100);
  const DeviceCall send = half(ranks, letter, Kind::send);
  letter.count = 50;
  const DeviceCall calls[] = {send, half(ranks, letter, Kind::recv)};
  ASSERT_TRUE(enqueue(calls).ok());
  ranks.synchronize();
  const Status status = ranks[1].failure();
  EXPECT_EQ(status.code(), Code::invalid_usage);
  EXPECT_NE(status.message().find("rank 0 sent belongs to another call"), std::string::npos) << status.message();
}

INSTANTIATE_TEST_SUITE_P(All, DeviceMessages, testing::ValuesIn(shared_device_kinds()), kind_of);

}  // namespace
}  // namespace tutti::test
