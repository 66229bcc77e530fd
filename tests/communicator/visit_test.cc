#include "src/communicator/visit.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "src/base/atomic.h"
#include "src/base/clock.h"

namespace tutti {
namespace {

class Visits : public testing::Test {
 protected:
  Board board_ = Board::create(2).value();
  std::vector<Mesh> meshes_ = Mesh::within_process(2).value();
};

TEST_F(Visits, FailWhereTheCommunicatorHas) {
  const Visit visit(board_, meshes_[0], 0);
  EXPECT_TRUE(visit.check().ok());
  board_.fail(1, timeout_error("waited"));
  EXPECT_EQ(visit.check().code(), Code::timeout);
}

// Who fails does not go before the other has left its memory.
TEST_F(Visits, EndTogetherAfterAFailure) {
  std::atomic<bool> visits = false, fails = false, ended = false;
  std::thread other([&] {
    const Visit visit(board_, meshes_[1], 1);
    EXPECT_TRUE(visit.check().ok());
    visits = true;
    while (!fails) ::sched_yield();
    for (int i = 0; i < 1000; ++i) ::sched_yield();
    ended = true;
  });
  while (!visits) ::sched_yield();
  {
    const Visit visit(board_, meshes_[0], 0);
    board_.fail(0, timeout_error("waited"));
    fails = true;
  }
  EXPECT_TRUE(ended);
  other.join();
}

TEST_F(Visits, DoNotWaitForTheDead) {
  meshes_.pop_back();  // Without a goodbye.
  store_release(&board_.entry(1).visitor, ~0U);
  EXPECT_TRUE(meshes_[0].is_dead(1));
  board_.fail(0, timeout_error("waited"));
  const std::int64_t began = now_ns();
  { const Visit visit(board_, meshes_[0], 0); }
  const std::int64_t dead = now_ns() - began;
  std::vector<Mesh> living = Mesh::within_process(2).value();
  { const Visit visit(board_, living[0], 0); }
  EXPECT_LT(dead, now_ns() - began - dead);
}

}  // namespace
}  // namespace tutti
