// ncclCommRevoke(), and the communicators made from a revoked one.
#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

constexpr int kRevoking = 3;

// A call in which the other ranks do not take part.
ncclResult_t call_alone(int& value, ncclComm_t comm, int rank) {
  return ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, stream_of(rank));
}

void expect_revoked(ncclComm_t comm) {
  int value = 0;
  EXPECT_EQ(outcome_of(comm), ncclSuccess);
  EXPECT_EQ(call_alone(value, comm, 0), ncclInvalidUsage);
  expect_error_text("ncclCommRevoke ended the calls of the communicator; shrink, split or destroy it");
  EXPECT_EQ(ncclCommFinalize(comm), ncclInvalidUsage);
  EXPECT_EQ(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT), ncclInvalidArgument) << "twice";
  expect_error_text("ended before");
}

// Rank 2 never makes the call, so only the revocation can end it.
TEST(Revoke, EndsRunningCalls) {
  const NcclRanks ranks(kRevoking, non_blocking_config());
  int values[] = {1, 2};
  for (int rank = 0; rank < 2; ++rank) EXPECT_NE(call_alone(values[rank], ranks[rank], rank), ncclInvalidUsage);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ncclCommRevoke(ranks[rank], NCCL_REVOKE_DEFAULT), ncclInProgress);
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess) << ncclGetLastError(nullptr);
    finish(rank);
    expect_revoked(ranks[rank]);
  }
  EXPECT_EQ(outcome_of(ranks[2]), ncclRemoteError) << "a peer that has not revoked it";
}

TEST(Revoke, EndsCallOfAnotherThread) {
  const NcclRanks ranks(2);
  std::thread watchdog([&] { NCCL_EXPECT_OK(ncclCommRevoke(ranks[0], NCCL_REVOKE_DEFAULT)); });
  int value = 1;
  EXPECT_NE(call_alone(value, ranks[0], 0), ncclInternalError);
  watchdog.join();
  finish(0);
  expect_revoked(ranks[0]);
}

TEST(Revoke, SurvivorsShrink) {
  NcclRanks ranks(kRevoking);
  NCCL_EXPECT_OK(ncclCommAbort(ranks.give_up(1)));
  for (const int rank : {0, 2}) {  // One after the other, since they share the last error.
    while (outcome_of(ranks[rank]) == ncclSuccess) std::this_thread::yield();
    NCCL_EXPECT_OK(ncclCommRevoke(ranks[rank], NCCL_REVOKE_DEFAULT));
    expect_revoked(ranks[rank]);
  }
  run_threads(2, [&](int i) {
    const int rank = 2 * i;
    int excluded = 1;
    ncclComm_t part = nullptr;
    NCCL_EXPECT_OK(ncclCommShrink(ranks[rank], &excluded, 1, &part, nullptr, NCCL_SHRINK_DEFAULT));
    expect_sum(part, rank, 1 + 3);
    NCCL_EXPECT_OK(ncclCommDestroy(part));
  });
}

TEST(Revoke, AllRanksSplit) {
  const NcclRanks ranks(kRevoking);
  ranks.run([](int rank, ncclComm_t comm) {
    NCCL_EXPECT_OK(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
    ncclComm_t part = nullptr;
    NCCL_EXPECT_OK(ncclCommSplit(comm, rank == 1 ? 1 : 0, -rank, &part, nullptr));
    ASSERT_NE(part, nullptr);
    expect_sub_communicator(part, rank == 0 ? 1 : 0, rank == 1 ? 1 : 2);
    expect_sum(part, rank, rank == 1 ? 2 : 1 + 3);
    NCCL_EXPECT_OK(ncclCommDestroy(part));
  });
}

TEST(Revoke, NonBlockingSplits_OnceQuiescent) {
  const NcclRanks ranks(2, non_blocking_config());
  ncclComm_t parts[2] = {};
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ncclCommRevoke(ranks[rank], NCCL_REVOKE_DEFAULT), ncclInProgress);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess);
    EXPECT_EQ(ncclCommSplit(ranks[rank], rank == 0 ? 0 : NCCL_SPLIT_NOCOLOR, 0, &parts[rank], nullptr), ncclInProgress);
  }
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(look(parts[1]), nullptr);
  expect_sum(look(parts[0]), 0, 1);
  NCCL_EXPECT_OK(ncclCommDestroy(parts[0]));
}

TEST(Revoke, RunsAllRanksInOneThread) {
  const NcclRanks ranks(2);
  NCCL_EXPECT_OK(
      ranks.run_in_group([](int, ncclComm_t comm) { NCCL_EXPECT_OK(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT)); }));
  for (int rank = 0; rank < 2; ++rank) expect_revoked(ranks[rank]);
}

TEST(Revoke, AllowsDeregistration) {
  const NcclRanks ranks(1);
  char buffer[64] = {};
  void* handle = nullptr;
  NCCL_EXPECT_OK(ncclCommRegister(ranks[0], buffer, sizeof buffer, &handle));
  NCCL_EXPECT_OK(ncclCommRevoke(ranks[0], NCCL_REVOKE_DEFAULT));
  NCCL_EXPECT_OK(ncclCommDeregister(ranks[0], handle));
}

// Invalid arguments end no calls.
TEST(Revoke, RejectsInvalidArguments) {
  NcclRanks ranks(2);
  EXPECT_EQ(ncclCommRevoke(ranks[0], 1), ncclInvalidArgument);
  expect_error_text("ncclCommRevoke: revokeFlags is 1: pass NCCL_REVOKE_DEFAULT");
  NCCL_EXPECT_OK(ncclCommRevoke(nullptr, NCCL_REVOKE_DEFAULT));
  ranks.run([](int rank, ncclComm_t comm) { expect_sum(comm, rank, 1 + 2); });
  NCCL_EXPECT_OK(ncclCommFinalize(ranks[1]));
  EXPECT_EQ(ncclCommRevoke(ranks[1], NCCL_REVOKE_DEFAULT), ncclInvalidArgument) << "finalized";
  const ncclComm_t stale = ranks.give_up(0);
  NCCL_EXPECT_OK(ncclCommDestroy(stale));
  EXPECT_EQ(ncclCommRevoke(stale, NCCL_REVOKE_DEFAULT), ncclInvalidArgument);
}

}  // namespace
}  // namespace tutti::test
