// ncclCommRegister() and ncclCommDeregister(), and the errors that they detect.
#include <cstdint>
#include <set>

#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

char buffer[4096];

void* registered(ncclComm_t comm) {
  void* handle = nullptr;
  NCCL_EXPECT_OK(ncclCommRegister(comm, buffer, sizeof buffer, &handle));
  EXPECT_NE(handle, nullptr);
  return handle;
}

TEST(Registration, ReturnsDifferentHandles_ForOneBuffer) {
  const NcclRanks ranks(1);
  void* first = registered(ranks[0]);
  void* second = registered(ranks[0]);
  EXPECT_NE(first, second);
  NCCL_EXPECT_OK(ncclCommDeregister(ranks[0], first));
  EXPECT_EQ(ncclCommDeregister(ranks[0], first), ncclInvalidUsage);
  expect_error_text("ncclCommDeregister: handle is not registered with this communicator");
  NCCL_EXPECT_OK(ncclCommDeregister(ranks[0], second));
  EXPECT_EQ(ncclCommDeregister(ranks[0], buffer), ncclInvalidUsage);
  NCCL_EXPECT_OK(ncclCommDeregister(ranks[0], nullptr));
}

// NCCL's clients register segments of an allocator, and parts of them again.
TEST(Registration, MayOverlap_AndChangesNoResult) {
  const NcclRanks ranks(2);
  std::vector<int> values[] = {std::vector<int>(1000, 1), std::vector<int>(1000, 2)};
  void *whole = nullptr, *part = nullptr;
  NCCL_EXPECT_OK(ncclCommRegister(ranks[0], values[0].data(), 4000, &whole));
  NCCL_EXPECT_OK(ncclCommRegister(ranks[0], values[0].data() + 10, 400, &part));
  ranks.run([&](int rank, ncclComm_t comm) {  // Rank 1 has registered nothing.
    NCCL_EXPECT_OK(ncclAllReduce(values[rank].data(), values[rank].data(), 1000, ncclInt32, ncclSum, comm, nullptr));
  });
  for (const auto& value : values) EXPECT_EQ(value, std::vector<int>(1000, 3));
  NCCL_EXPECT_OK(ncclCommDeregister(ranks[0], whole));
  NCCL_EXPECT_OK(ncclCommDeregister(ranks[0], part));
}

TEST(Registration, BelongsToOneCommunicator) {
  const NcclRanks ranks(2);
  void* handle = registered(ranks[0]);
  void* other = registered(ranks[1]);
  EXPECT_EQ(ncclCommDeregister(ranks[1], handle), ncclInvalidUsage);
  EXPECT_EQ(ncclCommDeregister(ranks[0], other), ncclInvalidUsage);
  NCCL_EXPECT_OK(ncclCommDeregister(ranks[0], handle));
  EXPECT_EQ(ncclCommDeregister(nullptr, handle), ncclInvalidArgument);
}

TEST(Registration, RejectsInvalidBuffers) {
  const NcclRanks ranks(1);
  void* handle = buffer;
  EXPECT_EQ(ncclCommRegister(ranks[0], nullptr, 8, &handle), ncclInvalidArgument);
  expect_error_text("ncclCommRegister: buff is NULL but size is 8 bytes");
  EXPECT_EQ(handle, nullptr);
  EXPECT_EQ(ncclCommRegister(ranks[0], buffer, SIZE_MAX, &handle), ncclInvalidArgument);
  expect_error_text("beyond the end of memory");
  EXPECT_EQ(ncclCommRegister(ranks[0], buffer, sizeof buffer, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommRegister(nullptr, buffer, sizeof buffer, &handle), ncclInvalidArgument);
  NCCL_EXPECT_OK(ncclCommRegister(ranks[0], nullptr, 0, &handle));
  NCCL_EXPECT_OK(ncclCommDeregister(ranks[0], handle));
}

TEST(Registration, EndsWithItsCommunicator) {
  for (const auto end : {ncclCommDestroy, ncclCommAbort}) {
    NcclRanks ranks(1);
    void* handle = registered(ranks[0]);
    const ncclComm_t ended = ranks.give_up(0);
    NCCL_EXPECT_OK(end(ended));
    EXPECT_EQ(ncclCommDeregister(ended, handle), ncclInvalidArgument);
    const NcclRanks others(1);
    registered(others[0]);
    EXPECT_EQ(ncclCommDeregister(others[0], handle), ncclInvalidUsage);
  }
}

// Some programs finalize all communicators, and deregister their buffers afterwards.
TEST(Registration, OutlivesFinalize) {
  const NcclRanks ranks(1);
  void* handle = registered(ranks[0]);
  NCCL_EXPECT_OK(ncclCommFinalize(ranks[0]));
  void* late = nullptr;
  EXPECT_EQ(ncclCommRegister(ranks[0], buffer, sizeof buffer, &late), ncclInvalidArgument);
  expect_error_text("the communicator is finalized");
  NCCL_EXPECT_OK(ncclCommDeregister(ranks[0], handle));
  EXPECT_EQ(ncclCommDeregister(ranks[0], handle), ncclInvalidUsage);
}

TEST(Registration, IsThreadSafe) {
  constexpr int kThreads = 4, kTimes = 300;
  const NcclRanks ranks(1);
  std::vector<std::set<void*>> handles(kThreads);
  run_threads(kThreads, [&](int thread) {
    for (int i = 0; i < kTimes; ++i) {
      NCCL_EXPECT_OK(ncclCommDeregister(ranks[0], registered(ranks[0])));
      handles[thread].insert(registered(ranks[0]));
    }
  });
  std::set<void*> all;
  for (const std::set<void*>& some : handles) all.insert(some.begin(), some.end());
  EXPECT_EQ(all.size(), std::size_t{kThreads * kTimes});
  for (void* handle : all) NCCL_EXPECT_OK(ncclCommDeregister(ranks[0], handle));
}

}  // namespace
}  // namespace tutti::test
