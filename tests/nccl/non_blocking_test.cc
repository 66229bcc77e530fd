// Non-blocking communicators.
#include <algorithm>
#include <atomic>

#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

TEST(NonBlocking, InitReturns_BeforePeersJoin) {
  ncclUniqueId id;
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  ncclConfig_t config = non_blocking_config();
  ncclComm_t comms[2] = {};
  EXPECT_EQ(ncclCommInitRankConfig(&comms[0], 2, id, 0, &config), ncclInProgress);
  ASSERT_NE(comms[0], nullptr) << "to be asked about, or aborted";
  ncclResult_t state = ncclSuccess;
  NCCL_EXPECT_OK(ncclCommGetAsyncError(comms[0], &state));
  EXPECT_EQ(state, ncclInProgress);
  int value = 0;
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comms[0], nullptr), ncclInvalidArgument);
  expect_error_text("still in progress");
  EXPECT_EQ(ncclCommCount(comms[0], &value), ncclInvalidArgument);
  EXPECT_EQ(ncclCommDestroy(comms[0]), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRankConfig(&comms[1], 2, id, 1, &config), ncclInProgress);
  for (const ncclComm_t comm : comms) {
    EXPECT_EQ(outcome_of(comm), ncclSuccess);
    NCCL_EXPECT_OK(ncclCommCount(comm, &value));
    EXPECT_EQ(value, 2);
    NCCL_EXPECT_OK(ncclCommDestroy(comm));
  }
}

TEST(NonBlocking, CallsReturn_BeforePeersCall) {
  const NcclRanks ranks(2, non_blocking_config());
  int values[] = {1, 2};
  for (int rank = 0; rank < 2; ++rank) {  // One thread, no group.
    EXPECT_EQ(ncclAllReduce(&values[rank], &values[rank], 1, ncclInt32, ncclSum, ranks[rank], nullptr), ncclInProgress);
    ncclResult_t state = ncclSuccess;
    NCCL_EXPECT_OK(ncclCommGetAsyncError(ranks[0], &state));
    EXPECT_TRUE(rank == 1 || state == ncclInProgress);
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess);
    EXPECT_EQ(values[rank], 3);
  }
}

TEST(NonBlocking, GroupsReturn_BeforeCompletion) {
  const NcclRanks ranks(2, non_blocking_config());
  std::vector<int> values[] = {values_of<int>(0, 1000), values_of<int>(1, 1000)};
  for (int rank = 0; rank < 2; ++rank) {
    NCCL_EXPECT_OK(ncclGroupStart());
    int* const data = values[rank].data();
    NCCL_EXPECT_OK(ncclAllReduce(data, data, 500, ncclInt32, ncclSum, ranks[rank], nullptr));
    NCCL_EXPECT_OK(ncclAllReduce(data + 500, data + 500, 500, ncclInt32, ncclSum, ranks[rank], nullptr));
    EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess);
    for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(values[rank][i], sum_of(2, i));
  }
}

TEST(NonBlocking, GroupsOfSeveralRanksReturn_BeforeCompletion) {
  const NcclRanks ranks(3, non_blocking_config());
  int values[] = {1, 2, 3};
  EXPECT_EQ(ranks.run_in_group([&](int rank, ncclComm_t comm) {
    NCCL_EXPECT_OK(ncclAllReduce(&values[rank], &values[rank], 1, ncclInt32, ncclSum, comm, nullptr));
  }),
            ncclInProgress);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess);
    EXPECT_EQ(values[rank], 6);
  }
}

TEST(NonBlocking, EmptyAndSimulatedGroupsCompleteAtOnce) {
  const NcclRanks ranks(1, non_blocking_config());
  int value = 1;
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(ncclGroupEnd());
  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, ranks[0], nullptr));
  NCCL_EXPECT_OK(ncclGroupSimulateEnd(&info));
  EXPECT_EQ(outcome_of(ranks[0]), ncclSuccess);
}

// One thread may finalize all its ranks, one after the other.
TEST(NonBlocking, FinalizeDoesNotWaitForPeers) {
  const NcclRanks ranks(2, non_blocking_config());
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ncclCommFinalize(ranks[rank]), ncclInProgress);
    EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess);
    EXPECT_EQ(ncclCommFinalize(ranks[rank]), ncclInvalidArgument) << "twice";
  }
}

TEST(NonBlocking, FinalizeRunsAfterCallsOfItsGroup) {
  const NcclRanks ranks(2, non_blocking_config());
  int values[] = {1, 2};
  for (int rank = 0; rank < 2; ++rank) {
    NCCL_EXPECT_OK(ncclGroupStart());
    NCCL_EXPECT_OK(ncclAllReduce(&values[rank], &values[rank], 1, ncclInt32, ncclSum, ranks[rank], nullptr));
    NCCL_EXPECT_OK(ncclCommFinalize(ranks[rank]));
    EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
    ncclResult_t state = ncclSuccess;
    NCCL_EXPECT_OK(ncclCommGetAsyncError(ranks[0], &state));
    EXPECT_TRUE(rank == 1 || state == ncclInProgress);
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess) << ncclGetLastError(nullptr);
    EXPECT_EQ(values[rank], 3);
  }
}

// The end of the group does not wait for jobs, so it cannot run calls after them.
TEST(NonBlocking, GroupsRejectMixOfJobsAndCalls) {
  const NcclRanks ranks(1, non_blocking_config());
  int value = 1;
  ncclComm_t part = nullptr;
  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(ncclCommSplit(ranks[0], 0, 0, &part, nullptr));
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, ranks[0], nullptr), ncclInvalidUsage);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, ranks[0], nullptr));
  EXPECT_EQ(ncclCommSplit(ranks[0], 0, 0, &part, nullptr), ncclInvalidUsage);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  expect_error_text("use two groups");
  EXPECT_EQ(outcome_of(ranks[0]), ncclSuccess);
}

TEST(NonBlocking, AbortEndsInit) {
  ncclUniqueId id;
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  ncclConfig_t config = non_blocking_config();
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
  NCCL_EXPECT_OK(ncclCommAbort(comm));
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclInvalidArgument) << "it is gone";
}

// Reads while another thread writes, which the test intends.
[[gnu::no_sanitize("thread")]] int peek(const int* value) { return *static_cast<const volatile int*>(value); }

// Programs free their buffers after an abort.
TEST(NonBlocking, AbortStopsUseOfBuffers) {
  constexpr std::size_t count = 4 << 20;
  for (int round = 0; round < 5; ++round) {
    NcclRanks ranks(2, non_blocking_config());
    std::vector<int> values[] = {std::vector<int>(count, 1), std::vector<int>(count, 1)};
    for (int rank = 0; rank < 2; ++rank) {
      int* const data = values[rank].data();
      EXPECT_EQ(ncclAllReduce(data, data, count, ncclInt32, ncclSum, ranks[rank], nullptr), ncclInProgress);
    }
    while (peek(values[1].data()) == 1) std::this_thread::yield();
    NCCL_EXPECT_OK(ncclCommAbort(ranks.give_up(1)));
    std::fill(values[1].begin(), values[1].end(), 7);
    outcome_of(ranks[0]);
    EXPECT_EQ(std::count(values[1].begin(), values[1].end(), 7), count);
  }
}

TEST(NonBlocking, AbortEndsSplit) {
  NcclRanks ranks(2, non_blocking_config());
  ncclComm_t part = nullptr;
  EXPECT_EQ(ncclCommSplit(ranks[0], 0, 0, &part, nullptr), ncclInProgress);
  NCCL_EXPECT_OK(ncclCommAbort(ranks.give_up(0)));
  EXPECT_EQ(part, nullptr) << "and it is not written any more";
  EXPECT_EQ(outcome_of(ranks[1]), ncclRemoteError);
}

TEST(NonBlocking, AbortEndsCall) {
  NcclRanks ranks(2, non_blocking_config());
  int value = 1;
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, ranks[0], nullptr), ncclInProgress);
  NCCL_EXPECT_OK(ncclCommAbort(ranks.give_up(0)));
  EXPECT_EQ(outcome_of(ranks[1]), ncclRemoteError) << "the peer gets an error";
}

TEST(NonBlocking, AsyncErrorReportsFailedInit) {
  ncclUniqueId id = {};  // No rendezvous exists for this id.
  ncclConfig_t config = non_blocking_config();
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
  EXPECT_NE(outcome_of(comm), ncclSuccess);
  EXPECT_STRNE(ncclGetLastError(nullptr), "");
  NCCL_EXPECT_OK(ncclCommAbort(comm));
}

}  // namespace
}  // namespace tutti::test
