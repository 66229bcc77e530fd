// Averages and pre-multiplied sums.
#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

TEST(Reduction, SupportsAllOperations) {
  const NcclRanks ranks(3);
  const struct {
    ncclRedOp_t op;
    int expected;  // For -3, 5, -4.
  } cases[] = {{ncclSum, -2}, {ncclProd, 60}, {ncclMax, 5}, {ncclMin, -4}, {ncclAvg, 0}};
  constexpr int values[] = {-3, 5, -4};
  for (const auto& one : cases) {
    ranks.run([&](int rank, ncclComm_t comm) {
      int value = values[rank];
      NCCL_EXPECT_OK(ncclAllReduce(&value, &value, 1, ncclInt32, one.op, comm, nullptr));
      EXPECT_EQ(value, one.expected) << "op " << one.op;
    });
  }
  ranks.run([&](int rank, ncclComm_t comm) {
    double value = values[rank];
    NCCL_EXPECT_OK(ncclAllReduce(&value, &value, 1, ncclFloat64, ncclAvg, comm, nullptr));
    EXPECT_DOUBLE_EQ(value, -2.0 / 3);
  });
}

// As in nccl-tests, the reduction is created and destroyed while the group is open.
TEST(Reduction, IsKeptByCallsOfOpenGroup) {
  const NcclRanks ranks(2);
  float values[] = {10, 100};
  NCCL_EXPECT_OK(ranks.run_in_group([&](int rank, ncclComm_t comm) {
    float scalar = rank == 0 ? 2.0f : 0.5f;
    ncclRedOp_t op;
    NCCL_EXPECT_OK(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, comm));
    EXPECT_GE(static_cast<int>(op), ncclNumOps);
    scalar = -1;  // The library copied the scalar at creation.
    NCCL_EXPECT_OK(ncclAllReduce(&values[rank], &values[rank], 1, ncclFloat32, op, comm, nullptr));
    NCCL_EXPECT_OK(ncclRedOpDestroy(op, comm));
  }));
  EXPECT_EQ(values[0], 70);
  EXPECT_EQ(values[1], 70);
}

TEST(Reduction, ReadsDeviceScalar_WhenCallRuns) {
  const NcclRanks ranks(2);
  float values[] = {10, 100};
  float scalars[] = {0, 0};
  NCCL_EXPECT_OK(ranks.run_in_group([&](int rank, ncclComm_t comm) {
    ncclRedOp_t op;
    NCCL_EXPECT_OK(ncclRedOpCreatePreMulSum(&op, &scalars[rank], ncclFloat32, ncclScalarDevice, comm));
    NCCL_EXPECT_OK(ncclAllReduce(&values[rank], &values[rank], 1, ncclFloat32, op, comm, nullptr));
    NCCL_EXPECT_OK(ncclRedOpDestroy(op, comm));
    scalars[rank] = 3;
  }));
  EXPECT_EQ(values[0], 330);
}

TEST(Reduction, MultipliesOnOneRank) {
  const NcclRanks ranks(1);
  std::int64_t value = 6, scalar = 7;
  ncclRedOp_t op;
  NCCL_EXPECT_OK(ncclRedOpCreatePreMulSum(&op, &scalar, ncclInt64, ncclScalarHostImmediate, ranks[0]));
  NCCL_EXPECT_OK(ncclAllReduce(&value, &value, 1, ncclInt64, op, ranks[0], nullptr));
  EXPECT_EQ(value, 42);
}

TEST(Reduction, RejectsOtherTypeOrCommunicator) {
  const NcclRanks ranks(1), others(1);
  float scalar = 2;
  ncclRedOp_t op;
  NCCL_EXPECT_OK(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, ranks[0]));
  double wide = 1;
  EXPECT_EQ(ncclAllReduce(&wide, &wide, 1, ncclFloat64, op, ranks[0], nullptr), ncclInvalidArgument);
  float value = 1;
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat32, op, others[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclRedOpDestroy(op, others[0]), ncclInvalidArgument);
  NCCL_EXPECT_OK(ncclRedOpDestroy(op, ranks[0]));
  EXPECT_EQ(ncclRedOpDestroy(op, ranks[0]), ncclInvalidArgument) << "twice";
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat32, op, ranks[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclRedOpDestroy(ncclSum, ranks[0]), ncclInvalidArgument);
  EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, nullptr, ncclFloat32, ncclScalarHostImmediate, ranks[0]),
            ncclInvalidArgument);
  EXPECT_EQ(ncclRedOpCreatePreMulSum(nullptr, &scalar, ncclFloat32, ncclScalarHostImmediate, ranks[0]),
            ncclInvalidArgument);
}

}  // namespace
}  // namespace tutti::test
