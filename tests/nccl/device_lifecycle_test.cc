// End of communicators on a device: by finalize and destroy in any order, by abort from any thread, by failure.
#include <atomic>

#include "tests/nccl/clients.h"
#include "tests/nccl/device_buffers.h"
#include "tests/nccl/newer_nccl.h"

namespace tutti::test {
namespace {

ncclResult_t sum(std::vector<int>& values, ncclComm_t comm, int rank) {
  return ncclAllReduce(values.data(), values.data(), values.size(), ncclInt32, ncclSum, comm, stream_of(rank));
}

ncclResult_t state_of(ncclComm_t comm) {
  ncclResult_t state = ncclInternalError;
  NCCL_EXPECT_OK(ncclCommGetAsyncError(comm, &state));
  return state;
}

// The error of a blocking communicator after it has failed.
ncclResult_t failure_of(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  while (state == ncclSuccess) {
    state = state_of(comm);
    std::this_thread::yield();
  }
  return state;
}

std::vector<ncclComm_t> make(int ranks) {
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(ranks));
  NCCL_EXPECT_OK(ncclCommInitAll(comms.data(), ranks, device_list()));
  return comms;
}

const std::vector<int> kThrees(5'000, 3);

TEST(DeviceLifecycle, DestroyWaitsForEnqueuedCalls) {
  std::vector<ncclComm_t> comms = make(2);
  std::vector<int> values[] = {std::vector<int>(5'000, 1), std::vector<int>(5'000, 2)};
  StreamGate gate(stream_of(1));
  for (int rank = 0; rank < 2; ++rank) NCCL_EXPECT_OK(sum(values[rank], comms[rank], rank));
  std::thread opening([&] { gate.open(); });
  for (int rank = 0; rank < 2; ++rank) {
    NCCL_EXPECT_OK(ncclCommDestroy(comms[rank]));
    EXPECT_EQ(values[rank], kThrees);
  }
  opening.join();
}

TEST(DeviceLifecycle, FinalizeWaitsForEnqueuedCalls) {
  const NcclRanks ranks(2);
  std::vector<int> values[] = {std::vector<int>(5'000, 1), std::vector<int>(5'000, 2)};
  StreamGate gate(stream_of(1));
  for (int rank = 0; rank < 2; ++rank) NCCL_EXPECT_OK(sum(values[rank], ranks[rank], rank));
  std::thread opening([&] { gate.open(); });
  for (int rank = 0; rank < 2; ++rank) {
    NCCL_EXPECT_OK(ncclCommFinalize(ranks[rank]));
    EXPECT_EQ(values[rank], kThrees);
    EXPECT_EQ(ncclCommFinalize(ranks[rank]), ncclInvalidArgument) << "twice";
    EXPECT_EQ(sum(values[rank], ranks[rank], rank), ncclInvalidArgument);
    EXPECT_EQ(state_of(ranks[rank]), ncclSuccess);
  }
  opening.join();
}

TEST(DeviceLifecycle, FinalizeAndDestroyInGroup_RunAfterItsCalls) {
  std::vector<ncclComm_t> comms = make(2);
  std::vector<int> values[] = {std::vector<int>(5'000, 1), std::vector<int>(5'000, 2)};
  NCCL_EXPECT_OK(ncclGroupStart());
  for (int rank = 0; rank < 2; ++rank) {
    NCCL_EXPECT_OK(sum(values[rank], comms[rank], rank));
    NCCL_EXPECT_OK(ncclCommFinalize(comms[rank]));
    NCCL_EXPECT_OK(ncclCommDestroy(comms[rank]));
  }
  NCCL_EXPECT_OK(ncclGroupEnd());
  for (const auto& value : values) EXPECT_EQ(value, kThrees);
}

TEST(DeviceLifecycle, OneThreadDestroysSeveral_InAnyOrder) {
  const std::vector<ncclComm_t> some = make(3), others = make(3);
  std::vector<int> values(3, 1), more(3, 1);
  NCCL_EXPECT_OK(ncclGroupStart());
  for (int rank = 0; rank < 3; ++rank) {
    NCCL_EXPECT_OK(ncclAllReduce(&values[rank], &values[rank], 1, ncclInt32, ncclSum, some[rank], stream_of(rank)));
    NCCL_EXPECT_OK(ncclAllReduce(&more[rank], &more[rank], 1, ncclInt32, ncclMax, others[rank], stream_of(rank)));
  }
  NCCL_EXPECT_OK(ncclGroupEnd());
  for (int rank = 0; rank < 3; ++rank) {
    NCCL_EXPECT_OK(ncclCommDestroy(some[rank]));
    NCCL_EXPECT_OK(ncclCommDestroy(others[2 - rank]));
  }
  for (int rank = 0; rank < 3; ++rank) finish(rank);
  EXPECT_EQ(values, std::vector<int>(3, 3));
  EXPECT_EQ(more, std::vector<int>(3, 1));
}

TEST(DeviceLifecycle, LeavesNothingOnDevice_ExceptCache) {
  release_cached_memory();
  const std::string before = device_usage();
  {
    const NcclRanks ranks(2);
    std::vector<int> values[] = {std::vector<int>(5'000, 1), std::vector<int>(5'000, 2)};
    for (int rank = 0; rank < 2; ++rank) NCCL_EXPECT_OK(sum(values[rank], ranks[rank], rank));
    for (int rank = 0; rank < 2; ++rank) finish(rank);
  }
  release_cached_memory();
  EXPECT_EQ(device_usage(), before);
}

void suspend(const NcclRanks& ranks) {
  NCCL_EXPECT_OK(
      ranks.run_in_group([](int, ncclComm_t comm) { NCCL_EXPECT_OK(ncclCommSuspend(comm, NCCL_SUSPEND_MEM)); }));
}

void resume(const NcclRanks& ranks) {
  NCCL_EXPECT_OK(ranks.run_in_group([](int, ncclComm_t comm) { NCCL_EXPECT_OK(ncclCommResume(comm)); }));
}

TEST(DeviceLifecycle, SuspendFreesDeviceMemory_AndResumeAllocatesIt) {
  release_cached_memory();
  const std::string before = device_usage();
  const NcclRanks ranks(2);
  std::vector<int> values[] = {std::vector<int>(5'000, 1), std::vector<int>(5'000, 2)};
  for (int times = 0; times < 2; ++times) {
    for (int rank = 0; rank < 2; ++rank) NCCL_EXPECT_OK(sum(values[rank], ranks[rank], rank));
    suspend(ranks);  // Waits for the calls.
    EXPECT_EQ(device_usage(), before);
    EXPECT_EQ(values[0], values[1]);
    uint64_t bytes = 77;
    NCCL_EXPECT_OK(ncclCommMemStats(ranks[0], ncclStatGpuMemTotal, &bytes));
    EXPECT_EQ(bytes, 0U);
    NCCL_EXPECT_OK(ncclCommMemStats(ranks[0], ncclStatGpuMemSuspended, &bytes));
    EXPECT_EQ(bytes, 1U);
    int device = -1;
    NCCL_EXPECT_OK(ncclCommCuDevice(ranks[0], &device));
    EXPECT_EQ(device, 0);
    resume(ranks);
    EXPECT_NE(device_usage(), before);
  }
  EXPECT_EQ(values[0], std::vector<int>(5'000, 6));
}

// The device is shared, so the suspension of a rank returns when the ranks of all threads have given up their memory.
TEST(DeviceLifecycle, SuspendReturnsAfterAllRanksFreedMemory) {
  release_cached_memory();
  const std::string before = device_usage();
  const NcclRanks ranks(4);
  for (int times = 0; times < 5; ++times) {
    ranks.run([](int rank, ncclComm_t comm) { expect_sum(comm, rank, 10); });
    ranks.run([&before](int, ncclComm_t comm) {
      NCCL_EXPECT_OK(ncclCommSuspend(comm, NCCL_SUSPEND_MEM));
      EXPECT_EQ(device_usage(), before);
    });
    resume(ranks);
  }
}

// A call of another communicator waits in its stream. The first free after it returns the memory.
TEST(DeviceLifecycle, SuspendKeepsMemoryCached_WhileOtherCommunicatorHasCalls) {
  StreamGate(stream_of(0)).open();  // The first one allocates memory.
  const NcclRanks other(2);
  std::vector<int> values[] = {std::vector<int>(5'000, 1), std::vector<int>(5'000, 2)};
  const auto start_sums = [&] {
    for (int rank = 0; rank < 2; ++rank) NCCL_EXPECT_OK(sum(values[rank], other[rank], rank));
  };
  start_sums();
  for (int rank = 0; rank < 2; ++rank) finish(rank);
  release_cached_memory();
  const std::string with_other = device_usage();
  void* memory = nullptr;
  NCCL_EXPECT_OK(ncclMemAlloc(&memory, 1'000));
  const std::string with_memory = device_usage();
  const NcclRanks suspended(2);
  {
    const StreamGate gate(stream_of(0));
    start_sums();
    suspend(suspended);
    EXPECT_NE(device_usage(), with_memory);
  }
  for (int rank = 0; rank < 2; ++rank) finish(rank);
  EXPECT_EQ(values[0], std::vector<int>(5'000, 6));
  NCCL_EXPECT_OK(ncclMemFree(memory));
  EXPECT_EQ(device_usage(), with_other);
}

TEST(DeviceLifecycle, SuspendRefusesWindows_AndCallsOfItsGroup) {
  const NcclRanks ranks(2);
  std::vector<int> values[] = {std::vector<int>(100, 1), std::vector<int>(100, 2)};
  std::vector<ncclWindow_t> windows(2);
  NCCL_EXPECT_OK(ranks.run_in_group([&](int rank, ncclComm_t comm) {
    NCCL_EXPECT_OK(ncclCommWindowRegister(comm, values[rank].data(), 400, &windows[rank], NCCL_WIN_COLL_SYMMETRIC));
  }));
  EXPECT_EQ(ranks.run_in_group([](int, ncclComm_t comm) { NCCL_EXPECT_OK(ncclCommSuspend(comm, NCCL_SUSPEND_MEM)); }),
            ncclInvalidUsage);
  expect_error_text("call ncclCommWindowDeregister for them first");
  for (int rank = 0; rank < 2; ++rank) NCCL_EXPECT_OK(ncclCommWindowDeregister(ranks[rank], windows[rank]));
  EXPECT_EQ(ranks.run_in_group([&](int rank, ncclComm_t comm) {
    NCCL_EXPECT_OK(sum(values[rank], comm, rank));
    NCCL_EXPECT_OK(ncclCommSuspend(comm, NCCL_SUSPEND_MEM));
  }),
            ncclInvalidUsage);
  expect_error_text("ncclCommSuspend follows calls of the same group");
  for (int rank = 0; rank < 2; ++rank) NCCL_EXPECT_OK(sum(values[rank], ranks[rank], rank));
  for (int rank = 0; rank < 2; ++rank) finish(rank);
  EXPECT_EQ(values[1], std::vector<int>(100, 3)) << "the calls of the failed group did not run";
}

// Returns the result of a suspension, also of a non-blocking communicator.
ncclResult_t suspended(ncclComm_t comm) {
  const ncclResult_t begun = ncclCommSuspend(comm, NCCL_SUSPEND_MEM);
  return begun == ncclInProgress ? outcome_of(comm) : begun;
}

// Rank 0 has no window, but its suspension fails as well. Afterwards both ranks may make calls, and suspend.
TEST(DeviceLifecycle, SuspendFailsOnAllRanks_IfOneHasWindows) {
  for (const ncclConfig_t& config : {ncclConfig_t(NCCL_CONFIG_INITIALIZER), non_blocking_config()}) {
    const NcclRanks ranks(2, config);
    std::vector<int> values[] = {std::vector<int>(100, 1), std::vector<int>(100, 2)};
    std::vector<ncclWindow_t> windows(2);
    (void)ranks.run_in_group([&](int rank, ncclComm_t comm) {
      NCCL_EXPECT_OK(ncclCommWindowRegister(comm, values[rank].data(), 400, &windows[rank], NCCL_WIN_COLL_SYMMETRIC));
    });
    for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess);
    NCCL_EXPECT_OK(ncclCommWindowDeregister(ranks[0], windows[0]));
    ranks.run([](int, ncclComm_t comm) { EXPECT_EQ(suspended(comm), ncclInvalidUsage); });
    expect_error_text("call ncclCommWindowDeregister for them first");
    ranks.run([](int rank, ncclComm_t comm) { expect_sum(comm, rank, 3); });
    NCCL_EXPECT_OK(ncclCommWindowDeregister(ranks[1], windows[1]));
    ranks.run([](int rank, ncclComm_t comm) {
      EXPECT_EQ(suspended(comm), ncclSuccess) << ncclGetLastError(nullptr);
      (void)ncclCommResume(comm);
      EXPECT_EQ(outcome_of(comm), ncclSuccess) << ncclGetLastError(nullptr);
      expect_sum(comm, rank, 3);
    });
  }
}

TEST(DeviceLifecycle, AbortEndsCall_ThatWaitsForPeer) {
  NcclRanks ranks(3);
  std::vector<int> values[] = {std::vector<int>(100, 1), std::vector<int>(100, 1)};
  for (int rank = 0; rank < 2; ++rank)
    NCCL_EXPECT_OK(sum(values[rank], ranks[rank], rank));  // The third rank never calls.
  run_threads(1, [&](int) { NCCL_EXPECT_OK(ncclCommAbort(ranks.give_up(0))); });
  for (int rank = 0; rank < 2; ++rank) finish(rank);
  EXPECT_EQ(failure_of(ranks[1]), ncclRemoteError);
  EXPECT_STRNE(ncclGetLastError(nullptr), "");
  EXPECT_EQ(sum(values[1], ranks[1], 1), ncclRemoteError);
  NCCL_EXPECT_OK(ncclCommAbort(ranks.give_up(2)));
}

// Earlier work in the stream never ends, as when a program aborts several failed communicators in turn.
TEST(DeviceLifecycle, AbortDoesNotWaitForProgramsWork) {
  std::vector<int> values(100, 1);
  {
    const StreamGate gate(stream_of(0));
    NcclRanks ranks(2);
    NCCL_EXPECT_OK(sum(values, ranks[0], 0));
    NCCL_EXPECT_OK(ncclCommAbort(ranks.give_up(0)));
  }
  finish(0);  // The memory of the call still exists, although all ranks have been aborted.
}

TEST(DeviceLifecycle, AbortEndsFinalize_ThatWaitsForPeer) {
  NcclRanks ranks(2);
  std::vector<int> values(100, 1);
  NCCL_EXPECT_OK(sum(values, ranks[0], 0));
  const ncclComm_t waiting = ranks.give_up(0);
  std::thread watchdog([&] { NCCL_EXPECT_OK(ncclCommAbort(waiting)); });
  const ncclResult_t ended = ncclCommFinalize(waiting);
  EXPECT_TRUE(ended == ncclRemoteError || ended == ncclInvalidArgument) << ncclGetErrorString(ended);
  watchdog.join();
  finish(0);
}

TEST(DeviceLifecycle, StateMayBeQueried_DuringCalls) {
  const NcclRanks ranks(2);
  std::atomic<bool> done = false;
  std::thread watchdog([&] {
    while (!done) {
      for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(state_of(ranks[rank]), ncclSuccess);
    }
  });
  ranks.run([](int rank, ncclComm_t comm) {
    std::vector<int> values(10, 0);
    for (int call = 0; call < 20; ++call) NCCL_EXPECT_OK(sum(values, comm, rank));
    finish(rank);
  });
  done = true;
  watchdog.join();
}

TEST(DeviceLifecycle, MismatchIsReportedByAsyncError) {
  const NcclRanks ranks(2);
  std::vector<int> values[] = {std::vector<int>(100, 1), std::vector<int>(99, 1)};
  for (int rank = 0; rank < 2; ++rank) NCCL_EXPECT_OK(sum(values[rank], ranks[rank], rank));
  EXPECT_EQ(failure_of(ranks[0]), ncclInvalidUsage);
  expect_error_text("99");
  for (int rank = 0; rank < 2; ++rank) finish(rank);
}

}  // namespace
}  // namespace tutti::test
