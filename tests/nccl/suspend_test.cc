// ncclCommSuspend() and ncclCommResume(): which functions a suspended communicator refuses, and its end.
#include <atomic>
#include <cstdlib>

#include "tests/nccl/clients.h"
#include "tests/nccl/newer_nccl.h"

namespace tutti::test {
namespace {

void suspend(int /*rank*/, ncclComm_t comm) { NCCL_EXPECT_OK(ncclCommSuspend(comm, NCCL_SUSPEND_MEM)); }
void resume(int /*rank*/, ncclComm_t comm) { NCCL_EXPECT_OK(ncclCommResume(comm)); }

void expect_suspended(ncclComm_t comm) {
  int value = 0;
  ncclComm_t part = nullptr;
  const auto expect_refused = [](ncclResult_t result) {
    EXPECT_EQ(result, ncclInvalidUsage);
    expect_error_text("the communicator is suspended: call ncclCommResume first");
  };
  expect_refused(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, stream_of(0)));
  expect_refused(ncclCommSplit(comm, 0, 0, &part, nullptr));
  expect_refused(ncclCommShrink(comm, nullptr, 0, &part, nullptr, NCCL_SHRINK_DEFAULT));
  expect_refused(ncclCommSuspend(comm, NCCL_SUSPEND_MEM));
  expect_refused(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
  expect_refused(ncclCommFinalize(comm));
}

void expect_sums(const NcclRanks& ranks, int expected) {
  ranks.run([&](int rank, ncclComm_t comm) { expect_sum(comm, rank, expected); });
}

TEST(Suspend, RefusesCalls_UntilResume) {
  const NcclRanks ranks(3);
  expect_sums(ranks, 6);
  NCCL_EXPECT_OK(ranks.run_in_group(suspend));
  for (int rank = 0; rank < 3; ++rank) {
    expect_suspended(ranks[rank]);
    EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess);
    expect_sub_communicator(ranks[rank], rank, 3);
  }
  NCCL_EXPECT_OK(ranks.run_in_group(resume));
  EXPECT_EQ(ncclCommResume(ranks[0]), ncclInvalidUsage);
  expect_error_text("the communicator is not suspended");
  expect_sums(ranks, 6);
}

TEST(Suspend, ResumesSubCommunicator_WithOpsAndSettings) {
  const NcclRanks ranks(4);
  ranks.run([](int rank, ncclComm_t comm) {
    ncclComm_t part = nullptr;
    NCCL_EXPECT_OK(ncclCommSplit(comm, rank % 2, 0, &part, nullptr));
    ncclRedOp_t twice = ncclSum;
    int factor = 2;
    NCCL_EXPECT_OK(ncclRedOpCreatePreMulSum(&twice, &factor, ncclInt32, ncclScalarHostImmediate, part));
    suspend(rank, part);
    expect_sum(comm, rank, 10);  // The parent is not suspended.
    resume(rank, part);
    expect_sub_communicator(part, rank / 2, 2);
    int value = rank;
    NCCL_EXPECT_OK(ncclAllReduce(&value, &value, 1, ncclInt32, twice, part, stream_of(rank)));
    finish(rank);
    EXPECT_EQ(value, rank % 2 == 0 ? 4 : 8);
    NCCL_EXPECT_OK(ncclCommDestroy(part));
  });
}

TEST(Suspend, WorksInBackground_OfNonBlockingCommunicator) {
  const NcclRanks ranks(2, non_blocking_config());
  ranks.run([](int rank, ncclComm_t comm) {
    EXPECT_EQ(ncclCommSuspend(comm, NCCL_SUSPEND_MEM), ncclInProgress);
    EXPECT_EQ(outcome_of(comm), ncclSuccess) << ncclGetLastError(nullptr);
    expect_suspended(comm);
    EXPECT_EQ(ncclCommResume(comm), ncclInProgress);
    EXPECT_EQ(outcome_of(comm), ncclSuccess) << ncclGetLastError(nullptr);
    expect_sum(comm, rank, 3);
  });
}

TEST(Suspend, RejectsFlags) {
  const NcclRanks ranks(1);
  for (const int flags : {0, 2, 3, -1}) EXPECT_EQ(ncclCommSuspend(ranks[0], flags), ncclInvalidArgument);
  expect_error_text("flags is -1: pass NCCL_SUSPEND_MEM");
  EXPECT_EQ(ncclCommSuspend(nullptr, NCCL_SUSPEND_MEM), ncclInvalidArgument);
  EXPECT_EQ(ncclCommResume(nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommResume(ranks[0]), ncclInvalidUsage);
  expect_error_text("the communicator is not suspended");
}

TEST(Suspend, CommunicatorEnds_WhileSuspended) {
  for (const auto end : {ncclCommDestroy, ncclCommAbort}) {
    NcclRanks ranks(2);
    NCCL_EXPECT_OK(ranks.run_in_group(suspend));
    for (int rank = 0; rank < 2; ++rank) NCCL_EXPECT_OK(end(ranks.give_up(rank)));
  }
}

// Threads query all the time, also while the communicator beneath is replaced.
TEST(Suspend, AllowsQueries_Meanwhile) {
  const NcclRanks ranks(2);
  const std::function<ncclResult_t(ncclComm_t)> queries[] = {
      outcome_of,
      [](ncclComm_t comm) {
        uint64_t bytes = 0;
        return ncclCommMemStats(comm, ncclStatGpuMemTotal, &bytes);
      },
      [](ncclComm_t comm) {
        int device = 0;
        return ncclCommCuDevice(comm, &device);
      },
  };
  std::atomic<bool> done = false;
  std::vector<std::thread> watchdogs;
  for (const auto& query : queries) {
    watchdogs.emplace_back([&] {
      for (int rank = 0; !done; rank = 1 - rank) NCCL_EXPECT_OK(query(ranks[rank]));
    });
  }
  for (int times = 0; times < 20; ++times) {
    NCCL_EXPECT_OK(ranks.run_in_group(suspend));
    NCCL_EXPECT_OK(ranks.run_in_group(resume));
  }
  done = true;
  for (std::thread& watchdog : watchdogs) watchdog.join();
}

// Rank 0 never suspends.
TEST(Suspend, EndsWaitForPeers_AfterTimeout) {
  const NcclRanks ranks(2);
  ::setenv("TUTTI_TIMEOUT_MS", "20", 1);
  EXPECT_EQ(ncclCommSuspend(ranks[1], NCCL_SUSPEND_MEM), ncclRemoteError);
  expect_error_text("rank 0 has not taken part for");
  ::unsetenv("TUTTI_TIMEOUT_MS");
  while (outcome_of(ranks[0]) == ncclSuccess) std::this_thread::yield();
  EXPECT_EQ(outcome_of(ranks[0]), ncclRemoteError) << "the ranks are out of step";
}

TEST(Suspend, AbortEndsWaitForPeers) {
  NcclRanks ranks(2);
  const ncclComm_t waiting = ranks.give_up(1);
  std::thread watchdog([&] {
    for (uint64_t suspends = 0; suspends == 0; std::this_thread::yield())
      NCCL_EXPECT_OK(ncclCommMemStats(waiting, ncclStatGpuMemSuspended, &suspends));
    NCCL_EXPECT_OK(ncclCommAbort(waiting));
  });
  EXPECT_EQ(ncclCommSuspend(waiting, NCCL_SUSPEND_MEM), ncclRemoteError) << ncclGetLastError(nullptr);
  watchdog.join();
}

}  // namespace
}  // namespace tutti::test
