#include "src/communicator/control/visit.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "src/base/atomic.h"
#include "src/base/clock.h"

namespace tutti::test {
namespace {

class Visits : public testing::Test {
 protected:
  Board board_ = Board::create(2).value();
  std::vector<Mesh> meshes_ = Mesh::within_process(Hosts::together(2)).value();
};

TEST_F(Visits, FailWhereTheCommunicatorHas) {
  const Visit visit(board_, 0);
  EXPECT_TRUE(visit.check().ok());
  board_.fail(1, timeout_error("waited"));
  EXPECT_EQ(visit.check().code(), Code::timeout);
}

// Rank 1 leaves when it hears that the communicator has failed, and says so before.
TEST_F(Visits, AreOutwaitedAfterAFailure) {
  std::atomic<bool> visits = false, left = false;
  std::thread other([&] {
    const Visit visit(board_, 1);
    EXPECT_TRUE(visit.check().ok());
    visits = true;
    while (visit.check().ok()) ::sched_yield();
    left = true;
  });
  while (!visits) ::sched_yield();
  board_.fail(0, timeout_error("waited"));
  outwait_visitors(board_, meshes_[0], 0, Deadline::after_ms(600'000));
  EXPECT_TRUE(left);
  other.join();
}

TEST_F(Visits, OfTheStoppedAreNotOutwaitedForEver) {
  const Visit stopped(board_, 1);
  EXPECT_TRUE(stopped.check().ok());
  outwait_visitors(board_, meshes_[0], 0, Deadline::after_ms(1));
  EXPECT_EQ(load_acquire(&board_.entry(1).visits), 1U);
}

TEST_F(Visits, OfTheDeadAreNotOutwaited) {
  store_release(&board_.entry(1).visits, 1U);
  meshes_.pop_back();  // Without a goodbye.
  const Deadline deadline = Deadline::after_ms(600'000);
  outwait_visitors(board_, meshes_[0], 0, deadline);
  EXPECT_FALSE(deadline.passed());
}

}  // namespace
}  // namespace tutti::test
