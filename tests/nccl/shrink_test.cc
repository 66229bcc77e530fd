// ncclCommShrink().
#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

TEST(Shrink, ExcludesRanks_AndKeepsParent) {
  const NcclRanks ranks(4);
  ranks.run([](int rank, ncclComm_t comm) {
    int excluded[] = {2, 0};
    if (rank != 0 && rank != 2) {
      auto part = reinterpret_cast<ncclComm_t>(0x8);
      NCCL_EXPECT_OK(ncclCommShrink(comm, excluded, 2, &part, nullptr, NCCL_SHRINK_DEFAULT));
      expect_sub_communicator(part, rank / 2, 2);
      expect_sum(part, rank, 2 + 4);
      NCCL_EXPECT_OK(ncclCommDestroy(part));
    }
    expect_sum(comm, rank, 1 + 2 + 3 + 4);
  });
}

TEST(Shrink, RunsAllRanksInOneThread) {
  const NcclRanks ranks(3);
  ncclComm_t parts[2] = {};
  int excluded = 2;
  NCCL_EXPECT_OK(ncclGroupStart());
  for (int rank = 0; rank < 2; ++rank) {
    NCCL_EXPECT_OK(ncclCommShrink(ranks[rank], &excluded, 1, &parts[rank], nullptr, NCCL_SHRINK_DEFAULT));
    EXPECT_EQ(parts[rank], nullptr) << "at the end of the group";
  }
  NCCL_EXPECT_OK(ncclGroupEnd());
  run_threads(2, [&](int rank) { expect_sum(parts[rank], rank, 1 + 2); });
  for (const ncclComm_t part : parts) NCCL_EXPECT_OK(ncclCommDestroy(part));
}

// The third rank never makes the call. Only the abort can end the other ranks' call.
TEST(Shrink, AbortFlagEndsCallsOfParent) {
  NcclRanks ranks(3, non_blocking_config());
  int values[] = {1, 2};
  ncclComm_t parts[2] = {};
  int excluded = 2;
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_NE(ncclAllReduce(&values[rank], &values[rank], 1, ncclInt32, ncclSum, ranks[rank], stream_of(rank)),
              ncclInvalidUsage);
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ncclCommShrink(ranks[rank], &excluded, 1, &parts[rank], nullptr, NCCL_SHRINK_ABORT), ncclInProgress);
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess) << "clients ask the parent how the shrink went";
    ASSERT_NE(look(parts[rank]), nullptr);
    finish(rank);
  }
  run_threads(2, [&](int rank) { expect_sum(parts[rank], rank, 1 + 2); });
  EXPECT_EQ(ncclAllReduce(values, values, 1, ncclInt32, ncclSum, ranks[0], stream_of(0)), ncclInvalidUsage);
  expect_error_text("NCCL_SHRINK_ABORT aborted the calls");
  while (outcome_of(ranks[2]) == ncclSuccess) std::this_thread::yield();
  EXPECT_EQ(outcome_of(ranks[2]), ncclRemoteError) << "excluded ranks get an error";
  for (const ncclComm_t part : parts) NCCL_EXPECT_OK(ncclCommDestroy(part));
}

TEST(Shrink, Succeeds_AfterFailure) {
  for (const int flags : {NCCL_SHRINK_DEFAULT, NCCL_SHRINK_ABORT}) {
    NcclRanks ranks(3);
    NCCL_EXPECT_OK(ncclCommAbort(ranks.give_up(1)));
    run_threads(2, [&](int i) {
      const int rank = 2 * i;
      int excluded = 1;
      ncclComm_t part = nullptr;
      while (outcome_of(ranks[rank]) == ncclSuccess) std::this_thread::yield();
      NCCL_EXPECT_OK(ncclCommShrink(ranks[rank], &excluded, 1, &part, nullptr, flags));
      EXPECT_EQ(outcome_of(ranks[rank]), flags == NCCL_SHRINK_ABORT ? ncclSuccess : ncclRemoteError);
      expect_sum(part, rank, 1 + 3);
      NCCL_EXPECT_OK(ncclCommDestroy(part));
    });
  }
}

TEST(Shrink, CanBeRetried) {
  const NcclRanks ranks(3, non_blocking_config());
  ncclComm_t parts[2] = {};
  int different[][1] = {{2}, {1}};
  const int counts[] = {1, 0};
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ncclCommShrink(ranks[rank], different[rank], counts[rank], &parts[rank], nullptr, 0), ncclInProgress);
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome_of(ranks[rank]), ncclInvalidUsage);
    expect_error_text("disagree");
    EXPECT_EQ(look(parts[rank]), nullptr);
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ncclCommShrink(ranks[rank], different[0], 1, &parts[rank], nullptr, 0), ncclInProgress);
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess) << ncclGetLastError(nullptr);
    expect_sub_communicator(look(parts[rank]), rank, 2);
    NCCL_EXPECT_OK(ncclCommDestroy(parts[rank]));
  }
}

TEST(Shrink, NonBlockingStoresHandle_WhenComplete) {
  const NcclRanks ranks(2, non_blocking_config());
  ncclComm_t parts[2] = {};
  EXPECT_EQ(ncclCommShrink(ranks[0], nullptr, 0, &parts[0], nullptr, 0), ncclInProgress);
  EXPECT_EQ(look(parts[0]), nullptr);
  EXPECT_EQ(ncclCommShrink(ranks[0], nullptr, 0, &parts[0], nullptr, 0), ncclInvalidArgument) << "one at a time";
  EXPECT_EQ(ncclCommShrink(ranks[1], nullptr, 0, &parts[1], nullptr, 0), ncclInProgress);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess);
    expect_sub_communicator(look(parts[rank]), rank, 2);
    NCCL_EXPECT_OK(ncclCommDestroy(parts[rank]));
  }
}

TEST(Shrink, CanBeAborted) {
  NcclRanks ranks(2, non_blocking_config());
  ncclComm_t part = nullptr;
  EXPECT_EQ(ncclCommShrink(ranks[0], nullptr, 0, &part, nullptr, 0), ncclInProgress);
  const ncclComm_t waiting = ranks.give_up(0);
  NCCL_EXPECT_OK(ncclCommAbort(waiting));
  EXPECT_EQ(look(part), nullptr);
  while (outcome_of(ranks[1]) == ncclSuccess) std::this_thread::yield();
}

TEST(Shrink, CanBeAborted_ByAnotherThread) {
  NcclRanks ranks(2);
  const ncclComm_t waiting = ranks.give_up(0);
  std::thread watchdog([&] { NCCL_EXPECT_OK(ncclCommAbort(waiting)); });
  ncclComm_t part = nullptr;
  EXPECT_NE(ncclCommShrink(waiting, nullptr, 0, &part, nullptr, 0), ncclSuccess);
  EXPECT_EQ(part, nullptr);
  watchdog.join();
}

TEST(Shrink, InheritsOrReplacesConfig) {
  const NcclRanks ranks(1);
  ncclConfig_t config = non_blocking_config();
  config.shrinkShare = 1;
  ncclComm_t inheriting = nullptr, taking = nullptr;
  NCCL_EXPECT_OK(ncclCommShrink(ranks[0], nullptr, 0, &inheriting, nullptr, 0));
  NCCL_EXPECT_OK(ncclCommShrink(ranks[0], nullptr, 0, &taking, &config, 0));
  NCCL_EXPECT_OK(ncclCommFinalize(inheriting));
  EXPECT_EQ(ncclCommFinalize(taking), ncclInProgress) << "it is a non-blocking one";
  EXPECT_EQ(outcome_of(taking), ncclSuccess);
  NCCL_EXPECT_OK(ncclCommDestroy(inheriting));
  NCCL_EXPECT_OK(ncclCommDestroy(taking));
}

// Invalid arguments are detected before any call is aborted: the parent stays usable.
TEST(Shrink, RejectsInvalidArguments) {
  const NcclRanks ranks(3);
  ncclComm_t part = nullptr;
  const auto expect = [&](std::vector<int> list, const char* words) {
    part = reinterpret_cast<ncclComm_t>(0x8);
    EXPECT_EQ(ncclCommShrink(ranks[1], list.data(), static_cast<int>(list.size()), &part, nullptr, NCCL_SHRINK_ABORT),
              ncclInvalidArgument);
    expect_error_text(words);
    EXPECT_EQ(part, nullptr);
  };
  expect({0, 3}, "excludeRanksList[1] is 3, which is out of range; ranks are 0..2");
  expect({-1}, "excludeRanksList[0] is -1, which is out of range");
  expect({2, 0, 2}, "excludeRanksList[2] is 2, a duplicate");
  expect({2, 1}, "excludeRanksList[1] is 1, which is the calling rank");
  int list = 0;
  EXPECT_EQ(ncclCommShrink(ranks[1], &list, -1, &part, nullptr, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommShrink(ranks[1], nullptr, 1, &part, nullptr, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommShrink(ranks[1], &list, 1, nullptr, nullptr, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommShrink(ranks[1], &list, 1, &part, nullptr, 2), ncclInvalidArgument);
  EXPECT_EQ(ncclCommShrink(nullptr, &list, 1, &part, nullptr, 0), ncclInvalidArgument);
  ncclConfig_t config = {};
  EXPECT_EQ(ncclCommShrink(ranks[1], &list, 1, &part, &config, NCCL_SHRINK_ABORT), ncclInvalidArgument);
  NCCL_EXPECT_OK(ncclGroupStart());
  EXPECT_EQ(ncclCommShrink(ranks[1], &list, -1, &part, nullptr, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  ranks.run([](int rank, ncclComm_t comm) { expect_sum(comm, rank, 1 + 2 + 3); });
}

}  // namespace
}  // namespace tutti::test
