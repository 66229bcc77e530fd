// Groups: nesting, repeated errors, and clean state afterwards.
#include "tests/nccl/clients.h"

extern "C" ncclResult_t ncclDevCommCreate(ncclComm_t, const void*, void*);  // Its header is for nvcc.
extern "C" ncclResult_t ncclDevCommDestroy(ncclComm_t, const void*);        // Its header is for nvcc.

namespace tutti::test {
namespace {

ncclResult_t sum_one(int& value, ncclComm_t comm) {
  return ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr);
}

TEST(Group, RejectsEndWithoutStart) {
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  expect_error_text("ncclGroupStart");
  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(ncclGroupEnd());
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

TEST(Group, RunsAtOutermostEnd) {
  const NcclRanks ranks(2);
  int values[] = {1, 2};
  NCCL_EXPECT_OK(ncclGroupStart());
  for (int rank = 0; rank < 2; ++rank) {
    NCCL_EXPECT_OK(ncclGroupStart());
    NCCL_EXPECT_OK(sum_one(values[rank], ranks[rank]));
    NCCL_EXPECT_OK(ncclGroupEnd());
  }
  EXPECT_EQ(values[0], 1) << "an inner end runs nothing";
  NCCL_EXPECT_OK(ncclGroupEnd());
  EXPECT_EQ(values[0], 3);
  EXPECT_EQ(values[1], 3);
}

TEST(Group, ReportsErrorAgain_AndRunsNothing) {
  const NcclRanks ranks(2);
  int values[] = {1, 2};
  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(sum_one(values[0], ranks[0]));
  EXPECT_EQ(ncclBroadcast(&values[1], &values[1], 1, ncclInt32, 9, ranks[1], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  expect_error_text("root 9 is out of range");
  EXPECT_EQ(values[0], 1);
  // The group and the communicators are usable as before.
  NCCL_EXPECT_OK(ranks.run_in_group([&](int rank, ncclComm_t comm) { NCCL_EXPECT_OK(sum_one(values[rank], comm)); }));
  EXPECT_EQ(values[0], 3);
}

// An error that tutti.h reports after its own group has begun would also fail the other communicator.
TEST(Group, NegativeCountFailsOnlyItsCommunicator) {
  const NcclRanks ranks(1), others(1);
  int value = 4;
  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(sum_one(value, others[0]));
  const auto count = static_cast<std::size_t>(-1);
  EXPECT_EQ(ncclAllReduce(&value, &value, count, ncclInt32, ncclSum, ranks[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  expect_error_text("more elements than fit in memory");
  NCCL_EXPECT_OK(sum_one(value, others[0]));
  NCCL_EXPECT_OK(sum_one(value, ranks[0]));
}

TEST(Group, IgnoresUnimplementedQueries) {
  const NcclRanks ranks(1);
  int value = 4;
  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(sum_one(value, ranks[0]));
  EXPECT_EQ(ncclDevCommDestroy(ranks[0], nullptr), ncclInvalidUsage);
  NCCL_EXPECT_OK(ncclGroupEnd());
  NCCL_EXPECT_OK(ncclGroupStart());
  EXPECT_EQ(ncclDevCommCreate(ranks[0], nullptr, nullptr), ncclInvalidUsage);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage) << "it would have been one of the group";
}

TEST(Group, AllowsMemoryAndRegistration) {
  const NcclRanks ranks(1);
  NCCL_EXPECT_OK(ncclGroupStart());
  void* memory = nullptr;
  void* handle = nullptr;
  NCCL_EXPECT_OK(ncclMemAlloc(&memory, 64));
  EXPECT_NE(memory, nullptr);
  NCCL_EXPECT_OK(ncclCommRegister(ranks[0], memory, 64, &handle));
  EXPECT_EQ(ncclCommDeregister(ranks[0], memory), ncclInvalidUsage) << "and what fails is no failure of the group";
  NCCL_EXPECT_OK(ncclMemFree(memory));
  NCCL_EXPECT_OK(ncclGroupEnd());
}

TEST(Group, BelongsToItsThread) {
  const NcclRanks ranks(1);
  NCCL_EXPECT_OK(ncclGroupStart());
  run_threads(1, [&](int) {
    int value = 5;
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    NCCL_EXPECT_OK(sum_one(value, ranks[0]));
  });
  NCCL_EXPECT_OK(ncclGroupEnd());
}

TEST(Group, RejectsMixOfBlockingAndNonBlocking) {
  const NcclRanks blocking(1);
  const NcclRanks non_blocking(1, non_blocking_config());
  int value = 1;
  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(sum_one(value, blocking[0]));
  EXPECT_EQ(sum_one(value, non_blocking[0]), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  expect_error_text("blocking and non-blocking");
}

TEST(Group, RunsSeveralCommunicatorsTogether) {
  const NcclRanks one(2), other(2);
  int values[2][2] = {{1, 2}, {10, 20}};
  NCCL_EXPECT_OK(ncclGroupStart());
  for (int rank = 0; rank < 2; ++rank) {  // The ranks of each communicator call in a different order.
    NCCL_EXPECT_OK(sum_one(values[0][rank], one[rank]));
    NCCL_EXPECT_OK(sum_one(values[1][rank], other[rank]));
  }
  NCCL_EXPECT_OK(ncclGroupEnd());
  EXPECT_EQ(values[0][1], 3);
  EXPECT_EQ(values[1][1], 30);
}

TEST(Group, SimulationRunsNothing) {
  const NcclRanks ranks(2);
  int values[] = {1, 2};
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  info.estimatedTime = 7;
  NCCL_EXPECT_OK(ncclGroupStart());
  for (int rank = 0; rank < 2; ++rank) NCCL_EXPECT_OK(sum_one(values[rank], ranks[rank]));
  NCCL_EXPECT_OK(ncclGroupSimulateEnd(&info));
  const float one = info.estimatedTime;
  EXPECT_GT(one, 0);
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage) << "the group is over";

  NCCL_EXPECT_OK(ncclGroupStart());
  for (int i = 0; i < 3; ++i) {
    for (int rank = 0; rank < 2; ++rank) NCCL_EXPECT_OK(sum_one(values[rank], ranks[rank]));
  }
  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(ncclGroupSimulateEnd(&info));
  EXPECT_EQ(info.estimatedTime, NCCL_UNDEF_FLOAT) << "of the inner one nothing is known";
  NCCL_EXPECT_OK(ncclGroupSimulateEnd(&info));
  EXPECT_FLOAT_EQ(info.estimatedTime, 3 * one);

  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(ncclSend(values, 1, ncclInt32, 1, ranks[0], nullptr));
  EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclInvalidUsage);
  expect_error_text("predictions exist for collectives only");
  EXPECT_EQ(info.estimatedTime, NCCL_UNDEF_FLOAT);
  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(ncclGroupSimulateEnd(&info));
  EXPECT_EQ(info.estimatedTime, 0) << "of an empty group";

  info.magic = 0;
  NCCL_EXPECT_OK(ncclGroupStart());
  EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupSimulateEnd(nullptr), ncclInvalidArgument);
  NCCL_EXPECT_OK(ranks.run_in_group([&](int rank, ncclComm_t comm) { NCCL_EXPECT_OK(sum_one(values[rank], comm)); }));
  EXPECT_EQ(values[1], 3);
}

}  // namespace
}  // namespace tutti::test
