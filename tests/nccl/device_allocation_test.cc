// ncclCommSuspend() while allocations of the calling thread fail. This program replaces operator new.
#include <cstdlib>
#include <new>
#include <utility>

#include "tests/nccl/clients.h"
#include "tests/nccl/newer_nccl.h"

namespace tutti::test {
namespace {

constexpr long kUnlimited = -1;
constexpr long kFirst = 40, kStep = 7;
thread_local constinit long allocations_left = kUnlimited;

bool fails() { return allocations_left >= 0 && allocations_left-- == 0; }

}  // namespace
}  // namespace tutti::test

// Not inlined: GCC would warn about free() of memory from new.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* memory = tutti::test::fails() ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace tutti::test {
namespace {

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
  for (long made = 0, left = 0; left <= 0; made += made < kFirst ? 1 : kStep) {
    allocations_left = made;
    const ncclResult_t result = ncclCommSuspend(ranks[0], NCCL_SUSPEND_MEM);
    left = std::exchange(allocations_left, kUnlimited);
    ASSERT_EQ(is_suspended(ranks[0]), result == ncclSuccess) << "after " << made << " allocations";
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
