// State on the board, which the ranks of a host share.
#include "src/communicator/control/board.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>
#include <vector>

#include "src/base/own_cpus.h"
#include "tests/base/many_cpus.h"

namespace tutti::test {
namespace {

// Publishes the CPUs of a rank from a thread bound to `cpus`.
void show(const Board& board, Rank rank, const std::vector<std::uint32_t>& cpus) {
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const std::uint32_t cpu : cpus) CPU_SET(cpu, &set);
    ASSERT_EQ(::sched_setaffinity(0, sizeof set, &set), 0);
    board.show_cpus(rank);
  }).join();
}

TEST(Board, WakesWatchers_WhenRankAnnouncesCall) {
  const auto made = Board::create(3);
  ASSERT_TRUE(made.ok());
  const Board& board = made.value();
  CallRecord record;
  *board.sleep_word(0) = *board.sleep_word(1) = 1;
  record.sequence = 1;
  board.announce(2, record);
  EXPECT_EQ(*board.sleep_word(0), 1U);  // No rank watches.
  board.watch();
  record.sequence = 2;
  board.announce(2, record);
  EXPECT_EQ(*board.sleep_word(0), 0U);
  EXPECT_EQ(*board.sleep_word(1), 0U);
}

TEST(Board, WakesAllRanks_WhenCommunicatorFails) {
  const auto made = Board::create(3);
  ASSERT_TRUE(made.ok());
  const Board& board = made.value();
  *board.sleep_word(0) = *board.sleep_word(1) = 1;
  board.fail(2, aborted_error("rank 2 aborted the communicator"));
  EXPECT_EQ(*board.sleep_word(0), 0U);
  EXPECT_EQ(*board.sleep_word(1), 0U);
}

TEST(Board, StopsThreadBlocksOfAllRanksAndChannels_WhenCommunicatorFails) {
  constexpr Rank kRanks = 6;
  const auto made = Board::create(kRanks);
  ASSERT_TRUE(made.ok());
  const Board& board = made.value();
  const auto expect_words = [&](std::uint32_t wanted) {
    for (Rank rank = 0; rank < kRanks; ++rank) {
      for (std::uint32_t channel = 0; channel < FailedWords::kCount; ++channel)
        ASSERT_EQ(*board.failed_words(rank).of(channel), wanted) << "rank " << rank << ", channel " << channel;
    }
  };
  expect_words(0);
  board.entry(0).cpu = board.entry(5).cpu = 7;  // Entries lie behind the words, as do access words.
  board.fail(5, aborted_error("rank 5 aborted the communicator"));
  expect_words(1);
  for (Rank rank = 0; rank < kRanks; ++rank) board.failed_words(rank) = {};  // As if rank 5 had died in fail().
  expect_words(0);
  board.stop_thread_blocks();
  expect_words(1);
  EXPECT_EQ(board.entry(0).cpu, 7U);
  EXPECT_EQ(board.entry(5).cpu, 7U);
  for (Rank rank = 0; rank < kRanks; ++rank) EXPECT_FALSE(board.access_words(rank)->any());
}

// Devices map only the leading section of the board.
TEST(Board, HasAccessWordsOfRanksOfThisHost) {
  constexpr Rank kRanks = 6, kHere = 3;
  auto made = Board::create(kRanks, kHere);
  ASSERT_TRUE(made.ok());
  Board& board = made.value();
  board.set_remote_ranks({1, 3, 4});
  for (const Rank rank : {1U, 3U, 4U}) EXPECT_EQ(board.access_words(rank), nullptr);
  const auto* end = board.segment().data() + Board::bytes_for_gpus(kHere);
  for (const Rank rank : {0U, 2U, 5U}) {
    ASSERT_NE(board.access_words(rank), nullptr);
    EXPECT_LE(reinterpret_cast<std::byte*>(board.access_words(rank) + 1), end);
    EXPECT_GE(reinterpret_cast<std::byte*>(&board.entry(rank)), end);
    for (std::uint32_t channel = 0; channel < AccessWords::kCount; ++channel)
      *board.access_words(rank)->of(channel) = rank * 100 + channel;
  }
  for (const Rank rank : {0U, 2U, 5U}) {
    for (std::uint32_t channel = 0; channel < AccessWords::kCount; ++channel)
      ASSERT_EQ(*board.access_words(rank)->of(channel), rank * 100 + channel);
  }
  EXPECT_EQ(*board.failed_words(0).of(63), 0U);
  const Board adopted = Board::adopt(board.segment().duplicate().value(), kRanks, kHere).value();
  EXPECT_EQ(reinterpret_cast<std::byte*>(&adopted.entry(5)) - adopted.segment().data(),
            reinterpret_cast<std::byte*>(&board.entry(5)) - board.segment().data());
}

TEST(Board, CountsSharedCpuOnce) {
  const std::vector<std::uint32_t> mine = own_cpus();
  const auto board = Board::create(3);
  ASSERT_TRUE(board.ok());
  show(board.value(), 0, {mine.front()});
  show(board.value(), 2, mine);
  EXPECT_EQ(board.value().cpus(), std::nullopt);  // Rank 1 has not published its CPUs.
  show(board.value(), 1, {mine.front()});
  EXPECT_EQ(board.value().cpus(), mine.size());
}

TEST(Board, CountsOneCpu_WhenAllRanksAreBoundToIt) {
  const std::vector<std::uint32_t> mine = own_cpus();
  const auto board = Board::create(2);
  ASSERT_TRUE(board.ok());
  for (const Rank rank : {0U, 1U}) show(board.value(), rank, {mine.back()});
  EXPECT_EQ(board.value().cpus(), 1U);
  show(board.value(), 1, mine);  // A rank publishes its CPUs once only.
  EXPECT_EQ(board.value().cpus(), 1U);
}

// CPU numbers exceed the bits of the board. Ranks on different CPUs must not count as oversubscribed.
TEST(Board, CountsCpusBeyondItsBits) {
  const auto board = Board::create(2);
  ASSERT_TRUE(board.ok());
  for (const Rank rank : {0U, 1U}) {
    const test::ManyCpus kernel({rank == 0 ? 100U : 1500U});
    board.value().show_cpus(rank);
  }
  EXPECT_EQ(board.value().cpus(), 2U);
}

TEST(Board, RemoteAccessDeadlineIsTheEarliestOfAllRanks) {
  const Board board = Board::create(2).value();
  EXPECT_EQ(board.remote_access_deadline({20}).at_ns, 20);
  EXPECT_EQ(board.remote_access_deadline({30}).at_ns, 20);
  EXPECT_EQ(board.remote_access_deadline({10}).at_ns, 10) << "whatever a peer wrote";
}

}  // namespace
}  // namespace tutti::test
