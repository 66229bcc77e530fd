// ncclCommSplit().
#include <atomic>

#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

TEST(Split, OrdersByKey_AndExcludesRanksWithoutColor) {
  const NcclRanks ranks(4);
  ranks.run([](int rank, ncclComm_t comm) {
    auto part = reinterpret_cast<ncclComm_t>(0x8);
    NCCL_EXPECT_OK(ncclCommSplit(comm, rank == 3 ? NCCL_SPLIT_NOCOLOR : 5, -rank, &part, nullptr));
    if (rank == 3) {
      EXPECT_EQ(part, nullptr);
      return;
    }
    expect_sub_communicator(part, 2 - rank, 3);
    int value = rank + 1;
    NCCL_EXPECT_OK(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, part, nullptr));
    EXPECT_EQ(value, 6);
    NCCL_EXPECT_OK(ncclCommDestroy(part));
  });
}

TEST(Split, RunsAllRanksInOneThread) {
  const NcclRanks ranks(3);
  ncclComm_t parts[3] = {};
  NCCL_EXPECT_OK(ranks.run_in_group(
      [&](int rank, ncclComm_t comm) { NCCL_EXPECT_OK(ncclCommSplit(comm, rank % 2, 0, &parts[rank], nullptr)); }));
  expect_sub_communicator(parts[0], 0, 2);
  expect_sub_communicator(parts[1], 0, 1);
  expect_sub_communicator(parts[2], 1, 2);
  for (const ncclComm_t part : parts) NCCL_EXPECT_OK(ncclCommDestroy(part));
}

TEST(Split, InheritsOrReplacesConfig) {
  const NcclRanks ranks(1, non_blocking_config());
  ncclComm_t inheriting = nullptr, blocking = nullptr;
  EXPECT_EQ(ncclCommSplit(ranks[0], 0, 0, &inheriting, nullptr), ncclInProgress);
  EXPECT_EQ(outcome_of(ranks[0]), ncclSuccess);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(ncclCommSplit(ranks[0], 0, 0, &blocking, &config), ncclInProgress) << "as the parent is";
  EXPECT_EQ(outcome_of(ranks[0]), ncclSuccess);
  int values[] = {1, 1};
  EXPECT_EQ(ncclAllReduce(&values[0], &values[0], 1, ncclInt32, ncclSum, inheriting, nullptr), ncclInProgress);
  EXPECT_EQ(ncclAllReduce(&values[1], &values[1], 1, ncclInt32, ncclSum, blocking, nullptr), ncclSuccess);
  EXPECT_EQ(outcome_of(inheriting), ncclSuccess);
  NCCL_EXPECT_OK(ncclCommDestroy(inheriting));
  NCCL_EXPECT_OK(ncclCommDestroy(blocking));
}

// PyTorch waits until the pointer is not null, and then uses the new communicator.
TEST(Split, NonBlockingStoresHandle_WhenComplete) {
  const NcclRanks ranks(2, non_blocking_config());
  ncclComm_t parts[2] = {};
  EXPECT_EQ(ncclCommSplit(ranks[0], 0, 0, &parts[0], nullptr), ncclInProgress);
  EXPECT_EQ(__atomic_load_n(&parts[0], __ATOMIC_ACQUIRE), nullptr);
  EXPECT_EQ(ncclCommSplit(ranks[0], 0, 0, &parts[0], nullptr), ncclInvalidArgument) << "one at a time";
  EXPECT_EQ(ncclCommSplit(ranks[1], 0, 0, &parts[1], nullptr), ncclInProgress);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess);
    const ncclComm_t part = __atomic_load_n(&parts[rank], __ATOMIC_ACQUIRE);
    ASSERT_NE(part, nullptr);
    EXPECT_EQ(outcome_of(part), ncclSuccess);
    expect_sub_communicator(part, rank, 2);
    NCCL_EXPECT_OK(ncclCommDestroy(part));
  }
}

// Splits match in order: the first splits of all ranks belong together.
TEST(Split, RunsSeveralTimes_InOneGroup) {
  for (const bool blocking : {true, false}) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking ? 1 : 0;
    const NcclRanks ranks(2, config);
    ncclComm_t alone[2] = {}, together[2] = {};
    const ncclResult_t ended = ranks.run_in_group([&](int rank, ncclComm_t comm) {
      NCCL_EXPECT_OK(ncclCommSplit(comm, rank, 0, &alone[rank], nullptr));
      NCCL_EXPECT_OK(ncclCommSplit(comm, 0, -rank, &together[rank], nullptr));
    });
    EXPECT_EQ(ended, blocking ? ncclSuccess : ncclInProgress);
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess) << ncclGetLastError(nullptr);
      expect_sub_communicator(alone[rank], 0, 1);
      expect_sub_communicator(together[rank], 1 - rank, 2);
      NCCL_EXPECT_OK(ncclCommDestroy(alone[rank]));
      NCCL_EXPECT_OK(ncclCommDestroy(together[rank]));
    }
  }
}

TEST(Split, RejectsInvalidArguments) {
  const NcclRanks ranks(1);
  ncclComm_t part = nullptr;
  EXPECT_EQ(ncclCommSplit(ranks[0], -2, 0, &part, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommSplit(ranks[0], 0, 0, nullptr, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommSplit(nullptr, 0, 0, &part, nullptr), ncclInvalidArgument);
  ncclConfig_t config = {};
  EXPECT_EQ(ncclCommSplit(ranks[0], 0, 0, &part, &config), ncclInvalidArgument);
}

TEST(Split, OutlivesItsParent) {
  ncclComm_t parent = nullptr, part = nullptr;
  NCCL_EXPECT_OK(ncclCommInitAll(&parent, 1, nullptr));
  NCCL_EXPECT_OK(ncclCommSplit(parent, 0, 0, &part, nullptr));
  NCCL_EXPECT_OK(ncclCommDestroy(parent));
  int value = 4;
  NCCL_EXPECT_OK(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, part, nullptr));
  NCCL_EXPECT_OK(ncclCommDestroy(part));
}

}  // namespace
}  // namespace tutti::test
