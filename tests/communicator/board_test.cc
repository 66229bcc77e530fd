// What ranks tell each other on the board.
#include "src/communicator/control/board.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>
#include <vector>

namespace tutti {
namespace {

std::vector<int> own_cpus() {
  cpu_set_t set;
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// As a rank whose thread is bound to these.
void show(const Board& board, Rank rank, const std::vector<int>& cpus) {
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) CPU_SET(cpu, &set);
    ASSERT_EQ(::sched_setaffinity(0, sizeof set, &set), 0);
    board.show_cpus(rank);
  }).join();
}

TEST(Board, CountsACpuThatRanksShareOnce) {
  const std::vector<int> mine = own_cpus();
  const auto board = Board::create(3);
  ASSERT_TRUE(board.ok());
  show(board.value(), 0, {mine.front()});
  show(board.value(), 2, mine);
  EXPECT_EQ(board.value().cpus(), std::nullopt);  // Rank 1 has not shown its own.
  show(board.value(), 1, {mine.front()});
  EXPECT_EQ(board.value().cpus(), mine.size());
}

TEST(Board, KnowsThatAllRanksAreOnOneCpu) {
  const std::vector<int> mine = own_cpus();
  const auto board = Board::create(2);
  ASSERT_TRUE(board.ok());
  for (const Rank rank : {0U, 1U}) show(board.value(), rank, {mine.back()});
  EXPECT_EQ(board.value().cpus(), 1U);
  show(board.value(), 1, mine);  // Shown once, for good.
  EXPECT_EQ(board.value().cpus(), 1U);
}

TEST(Board, RanksWaitNoLongerThanTheFirstOfThem) {
  const Board board = Board::create(2).value();
  EXPECT_EQ(board.outwait_until({20}).at_ns, 20);
  EXPECT_EQ(board.outwait_until({30}).at_ns, 20);
  EXPECT_EQ(board.outwait_until({10}).at_ns, 10) << "whatever a peer wrote";
}

}  // namespace
}  // namespace tutti
