// ncclCommSuspend() while allocations of the calling thread fail.
#include "tests/communicator/refusal.h"
#include "tests/nccl/clients.h"
#include "tests/nccl/newer_nccl.h"

namespace tutti::test {
namespace {

constexpr std::uint64_t kFirst = 40, kStep = 7;

bool is_suspended(ncclComm_t comm) {
  uint64_t suspended = 0;
  NCCL_EXPECT_OK(ncclCommMemStats(comm, ncclStatGpuMemSuspended, &suspended));
  return suspended == 1;
}

// The first allocations of a suspension fail one by one, and then a part of the others. If one fails the suspension,
// the communicator is as before.
TEST(DeviceAllocation, FailureEndsSuspension) {
  const NcclRanks ranks(1);
  int failures = 0;
  bool refused = true;
  for (std::uint64_t which = 1; refused; which += which <= kFirst ? 1 : kStep) {
    ncclResult_t result = ncclSuccess;
    {
      const Refusal refusal(which);
      result = ncclCommSuspend(ranks[0], NCCL_SUSPEND_MEM);
      refused = refusal.came();
    }
    ASSERT_EQ(is_suspended(ranks[0]), result == ncclSuccess) << "allocation " << which;
    failures += result == ncclSuccess ? 0 : 1;
    if (result == ncclSuccess) {
      NCCL_EXPECT_OK(ncclCommResume(ranks[0]));
    }
    ASSERT_EQ(outcome_of(ranks[0]), ncclSuccess) << ncclGetLastError(nullptr);
  }
  expect_sum(ranks[0], 0, 1);
  EXPECT_GT(failures, 10);
}

}  // namespace
}  // namespace tutti::test
