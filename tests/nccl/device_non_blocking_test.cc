// Non-blocking communicators on a device: creation, split and finalize stay in progress for a time. Calls are enqueued
// when they return, as with blocking communicators.
#include "tests/nccl/clients.h"
#include "tests/nccl/device_buffers.h"

namespace tutti::test {
namespace {

ncclResult_t sum_one(int& value, ncclComm_t comm, int rank) {
  return ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, stream_of(rank));
}

ncclResult_t state_of(ncclComm_t comm) {
  ncclResult_t state = ncclInternalError;
  NCCL_EXPECT_OK(ncclCommGetAsyncError(comm, &state));
  return state;
}

TEST(DeviceNonBlocking, InitReturns_BeforePeersJoin) {
  ncclUniqueId id;
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  ncclConfig_t config = non_blocking_config();
  ncclComm_t comms[2] = {};
  EXPECT_EQ(ncclCommInitRankConfig(&comms[0], 2, id, 0, &config), ncclInProgress);
  EXPECT_EQ(state_of(comms[0]), ncclInProgress);
  int value = 0;
  EXPECT_EQ(sum_one(value, comms[0], 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRankConfig(&comms[1], 2, id, 1, &config), ncclInProgress);
  for (const ncclComm_t comm : comms) {
    EXPECT_EQ(outcome_of(comm), ncclSuccess);
    NCCL_EXPECT_OK(ncclCommDestroy(comm));
  }
}

// While the stream waits, the communicator is not in progress: more calls may be made.
TEST(DeviceNonBlocking, CallsComplete_WhenEnqueued) {
  const NcclRanks ranks(2, non_blocking_config());
  int values[] = {1, 2};
  {
    const StreamGate gate(stream_of(0));
    for (int call = 0; call < 3; ++call) {
      for (int rank = 0; rank < 2; ++rank) NCCL_EXPECT_OK(sum_one(values[rank], ranks[rank], rank));
    }
    NCCL_EXPECT_OK(
        ranks.run_in_group([&](int rank, ncclComm_t comm) { NCCL_EXPECT_OK(sum_one(values[rank], comm, rank)); }));
    EXPECT_EQ(state_of(ranks[0]), ncclSuccess);
  }
  for (int rank = 0; rank < 2; ++rank) finish(rank);
  EXPECT_EQ(values[0], 24);
  EXPECT_EQ(values[1], 24);
}

TEST(DeviceNonBlocking, SplitCompletes_WhenAllHaveCalled) {
  const NcclRanks ranks(2, non_blocking_config());
  ncclComm_t parts[2] = {};
  EXPECT_EQ(ncclCommSplit(ranks[0], 0, 0, &parts[0], nullptr), ncclInProgress);
  EXPECT_EQ(__atomic_load_n(&parts[0], __ATOMIC_ACQUIRE), nullptr);
  EXPECT_EQ(state_of(ranks[0]), ncclInProgress);
  EXPECT_EQ(ncclCommSplit(ranks[1], 0, 0, &parts[1], nullptr), ncclInProgress);
  int values[] = {1, 2};
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess);
    EXPECT_EQ(outcome_of(parts[rank]), ncclSuccess);
    NCCL_EXPECT_OK(sum_one(values[rank], parts[rank], rank));
  }
  for (int rank = 0; rank < 2; ++rank) {
    finish(rank);
    EXPECT_EQ(values[rank], 3);
    NCCL_EXPECT_OK(ncclCommDestroy(parts[rank]));
  }
}

TEST(DeviceNonBlocking, FinalizeIsInProgress_UntilAllCallsComplete) {
  const NcclRanks ranks(2, non_blocking_config());
  int values[] = {1, 2};
  {
    const StreamGate gate(stream_of(0));
    for (int rank = 0; rank < 2; ++rank) {
      NCCL_EXPECT_OK(sum_one(values[rank], ranks[rank], rank));
      EXPECT_EQ(ncclCommFinalize(ranks[rank]), ncclInProgress);
    }
    EXPECT_EQ(state_of(ranks[0]), ncclInProgress);
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess);
    EXPECT_EQ(values[rank], 3);
    EXPECT_EQ(ncclCommFinalize(ranks[rank]), ncclInvalidArgument) << "twice";
  }
}

TEST(DeviceNonBlocking, FinalizeRunsAfterCallsOfItsGroup) {
  const NcclRanks ranks(2, non_blocking_config());
  int values[] = {1, 2};
  const ncclResult_t ended = ranks.run_in_group([&](int rank, ncclComm_t comm) {
    NCCL_EXPECT_OK(sum_one(values[rank], comm, rank));
    NCCL_EXPECT_OK(ncclCommFinalize(comm));
  });
  EXPECT_EQ(ended, ncclInProgress);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess);
    EXPECT_EQ(values[rank], 3);
  }
}

TEST(DeviceNonBlocking, AbortEndsInit) {
  ncclUniqueId id;
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  ncclConfig_t config = non_blocking_config();
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
  NCCL_EXPECT_OK(ncclCommAbort(comm));
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclInvalidArgument) << "it is gone";
}

TEST(DeviceNonBlocking, AbortEndsSplit) {
  NcclRanks ranks(2, non_blocking_config());
  ncclComm_t part = nullptr;
  EXPECT_EQ(ncclCommSplit(ranks[0], 0, 0, &part, nullptr), ncclInProgress);
  NCCL_EXPECT_OK(ncclCommAbort(ranks.give_up(0)));
  EXPECT_EQ(part, nullptr);
  EXPECT_EQ(outcome_of(ranks[1]), ncclRemoteError);
}

TEST(DeviceNonBlocking, AbortEndsFinalize_ThatWaitsForPeer) {
  NcclRanks ranks(2, non_blocking_config());
  int value = 1;
  NCCL_EXPECT_OK(sum_one(value, ranks[0], 0));
  EXPECT_EQ(ncclCommFinalize(ranks[0]), ncclInProgress);
  EXPECT_EQ(state_of(ranks[0]), ncclInProgress);
  NCCL_EXPECT_OK(ncclCommAbort(ranks.give_up(0)));
  finish(0);
  EXPECT_EQ(outcome_of(ranks[1]), ncclRemoteError);
}

}  // namespace
}  // namespace tutti::test
