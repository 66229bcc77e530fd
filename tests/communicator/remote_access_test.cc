#include "src/communicator/control/remote_access.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "src/base/atomic.h"
#include "src/base/clock.h"

namespace tutti::test {
namespace {

class RemoteAccessTest : public testing::Test {
 protected:
  Board board_ = Board::create(2).value();
  std::vector<Mesh> meshes_ = Mesh::within_process(Hosts::one_host(2)).value();
};

TEST_F(RemoteAccessTest, Fails_WhenCommunicatorHasFailed) {
  const RemoteAccess access(board_, 0);
  EXPECT_TRUE(access.check().ok());
  board_.fail(1, timeout_error("waited"));
  EXPECT_EQ(access.check().code(), Code::timeout);
}

// Rank 1 ends its access when it detects the failure. wait_for_remote_access() must not return before that.
TEST_F(RemoteAccessTest, IsWaitedFor_AfterFailure) {
  std::atomic<bool> remote_accesses = false, left = false;
  std::thread other([&] {
    const RemoteAccess access(board_, 1);
    EXPECT_TRUE(access.check().ok());
    remote_accesses = true;
    while (access.check().ok()) ::sched_yield();
    left = true;
  });
  while (!remote_accesses) ::sched_yield();
  board_.fail(0, timeout_error("waited"));
  wait_for_remote_access(board_, meshes_[0], 0, Deadline::after_ms(600'000));
  EXPECT_TRUE(left);
  other.join();
}

TEST_F(RemoteAccessTest, IsWaitedForUntilDeadline_WhenRankIsStopped) {
  const RemoteAccess stopped(board_, 1);
  EXPECT_TRUE(stopped.check().ok());
  wait_for_remote_access(board_, meshes_[0], 0, Deadline::after_ms(1));
  EXPECT_EQ(load_acquire(&board_.entry(1).remote_accesses), 1U);
}

// Thread blocks of any channel, but only of ranks of this host.
TEST_F(RemoteAccessTest, OfThreadBlockIsWaitedFor) {
  for (const std::uint32_t channel : {0U, 1U, AccessWords::kCount - 1}) {
    store_release(board_.access_words(1)->of(channel), 1U);
    const Deadline deadline = Deadline::after_ms(1);
    wait_for_remote_access(board_, meshes_[0], 0, deadline);
    EXPECT_TRUE(deadline.passed()) << channel;
    store_release(board_.access_words(1)->of(channel), 0U);
  }
  board_.set_remote_ranks({1});
  wait_for_remote_access(board_, meshes_[0], 0, Deadline::after_ms(600'000));
}

TEST_F(RemoteAccessTest, IsNotWaitedFor_WhenRankDied) {
  store_release(&board_.entry(1).remote_accesses, 1U);
  meshes_.pop_back();  // Rank 1 sends no goodbye.
  const Deadline deadline = Deadline::after_ms(600'000);
  wait_for_remote_access(board_, meshes_[0], 0, deadline);
  EXPECT_FALSE(deadline.passed());
}

}  // namespace
}  // namespace tutti::test
