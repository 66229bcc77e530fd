// Calls on a device: their order, their streams, and differences from host memory.
#include <cstdlib>

#include "tests/nccl/clients.h"
#include "tests/nccl/device_buffers.h"
#include "tests/nccl/newer_nccl.h"

namespace tutti::test {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kCount = 3'000;

ncclResult_t sum(std::vector<int>& values, ncclComm_t comm, cudaStream_t stream) {
  return ncclAllReduce(values.data(), values.data(), values.size(), ncclInt32, ncclSum, comm, stream);
}

std::vector<std::vector<int>> ones() { return std::vector<std::vector<int>>(kRanks, std::vector<int>(kCount, 1)); }

void finish_all() {
  for (int rank = 0; rank < kRanks; ++rank) finish(rank);
}

void expect_all(const std::vector<std::vector<int>>& buffers, int wanted) {
  for (const std::vector<int>& buffer : buffers) EXPECT_EQ(buffer, std::vector<int>(kCount, wanted));
}

TEST(Device, CallsReturn_BeforePeersCall) {
  const NcclRanks ranks(kRanks);
  auto buffers = ones();
  for (int rank = 0; rank < kRanks; ++rank) NCCL_EXPECT_OK(sum(buffers[rank], ranks[rank], stream_of(rank)));
  finish_all();
  expect_all(buffers, kRanks);
}

TEST(Device, CallsKeepStreamOrder) {
  const NcclRanks ranks(kRanks);
  auto buffers = ones();
  std::vector<std::vector<int>> seen(kRanks);
  {
    const StreamGate gate(stream_of(1));
    for (int rank = 0; rank < kRanks; ++rank)
      put(stream_of(rank), [&, rank] { buffers[rank].assign(kCount, rank + 10); });
    NCCL_EXPECT_OK(ranks.run_in_group(
        [&](int rank, ncclComm_t comm) { NCCL_EXPECT_OK(sum(buffers[rank], comm, stream_of(rank))); }));
    for (int rank = 0; rank < kRanks; ++rank) put(stream_of(rank), [&, rank] { seen[rank] = buffers[rank]; });
  }
  finish_all();
  expect_all(seen, 33);
}

// Each call reads the result of the previous one.
TEST(Device, CallsOfOneCommunicatorKeepOrder_InDifferentStreams) {
  const NcclRanks ranks(kRanks);
  auto buffers = ones();
  for (int call = 0; call < 4; ++call) {
    for (int rank = 0; rank < kRanks; ++rank)
      NCCL_EXPECT_OK(sum(buffers[rank], ranks[rank], stream_of((rank + call) % kRanks)));
  }
  finish_all();
  expect_all(buffers, 81);
}

TEST(Device, AllStreamsOfGroupWaitForItsCalls) {
  const NcclRanks ranks(kRanks);
  auto first = ones(), second = ones();
  std::vector<std::vector<int>> seen(kRanks);
  NCCL_EXPECT_OK(ranks.run_in_group([&](int rank, ncclComm_t comm) {
    NCCL_EXPECT_OK(sum(first[rank], comm, stream_of(rank)));
    NCCL_EXPECT_OK(sum(second[rank], comm, stream_of(kRanks + rank)));
  }));
  for (int rank = 0; rank < kRanks; ++rank) put(stream_of(kRanks + rank), [&, rank] { seen[rank] = first[rank]; });
  for (int rank = 0; rank < kRanks; ++rank) finish(kRanks + rank);
  expect_all(seen, kRanks);
  expect_all(second, kRanks);
}

TEST(Device, AcceptsNullStream) {
  const NcclRanks ranks(kRanks);
  auto buffers = ones();
  NCCL_EXPECT_OK(
      ranks.run_in_group([&](int rank, ncclComm_t comm) { NCCL_EXPECT_OK(sum(buffers[rank], comm, nullptr)); }));
  EXPECT_TRUE(current_rig().synchronize(nullptr).ok());
  expect_all(buffers, kRanks);
}

TEST(Device, CapturedCallsBecomePartOfGraph) {
  const NcclRanks ranks(kRanks);
  auto buffers = ones();
  ASSERT_TRUE(current_rig().begin_capture(stream_of(0)).ok());
  for (int call = 0; call < 2; ++call) {
    NCCL_EXPECT_OK(
        ranks.run_in_group([&](int rank, ncclComm_t comm) { NCCL_EXPECT_OK(sum(buffers[rank], comm, stream_of(0))); }));
  }
  const auto graph = current_rig().end_capture(stream_of(0));
  ASSERT_TRUE(graph.ok());
  finish(0);
  expect_all(buffers, 1);
  for (const int wanted : {9, 81}) {
    ASSERT_TRUE(graph.value()->replay(stream_of(0)).ok());
    finish(0);
    expect_all(buffers, wanted);
  }
}

TEST(Device, IsCurrentDevice_OrThatOfList) {
  const NcclRanks current(1, NCCL_CONFIG_INITIALIZER);
  int device = -1;
  NCCL_EXPECT_OK(ncclCommCuDevice(current[0], &device));
  EXPECT_EQ(device, 0);
  std::vector<ncclComm_t> comms(2);
  const int twice[] = {0, 0};
  NCCL_EXPECT_OK(ncclCommInitAll(comms.data(), 2, twice));
  for (const ncclComm_t comm : comms) {
    NCCL_EXPECT_OK(ncclCommCuDevice(comm, &device));
    EXPECT_EQ(device, 0);
    NCCL_EXPECT_OK(ncclCommDestroy(comm));
  }
  const int missing[] = {1};
  EXPECT_EQ(ncclCommInitAll(comms.data(), 1, missing), ncclInvalidArgument);
  expect_error_text("invalid CUDA device 1; valid devices are 0 to 0");
  EXPECT_EQ(comms[0], nullptr);
}

TEST(Device, MayBeSelectedByEnvironment) {
  ncclUniqueId id;
  ::setenv("TUTTI_NCCL_MEMORY", "cuda", 1);
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  ::setenv("TUTTI_NCCL_MEMORY", "managed", 1);
  void* memory = nullptr;
  EXPECT_EQ(ncclMemAlloc(&memory, 8), ncclInvalidUsage);
  expect_error_text("\"managed\"");
  ::unsetenv("TUTTI_NCCL_MEMORY");
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
}

TEST(Device, SubCommunicatorsStayOnDevice) {
  const NcclRanks ranks(kRanks);
  ncclComm_t parts[kRanks] = {};
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  NCCL_EXPECT_OK(ranks.run_in_group([&](int rank, ncclComm_t comm) {
    NCCL_EXPECT_OK(ncclCommSplit(comm, 0, -rank, &parts[rank], rank == 1 ? nullptr : &config));
  }));
  auto buffers = ones();
  for (int rank = 0; rank < kRanks; ++rank) {
    int device = -1;
    NCCL_EXPECT_OK(ncclCommCuDevice(parts[rank], &device));
    EXPECT_EQ(device, 0);
    NCCL_EXPECT_OK(sum(buffers[rank], parts[rank], stream_of(rank)));
  }
  finish_all();
  expect_all(buffers, kRanks);
  for (const ncclComm_t part : parts) NCCL_EXPECT_OK(ncclCommDestroy(part));
}

TEST(Device, HostScalarIsCopiedByItsCall) {
  const NcclRanks ranks(kRanks);
  std::vector<std::vector<float>> buffers(kRanks, std::vector<float>(kCount, 1));
  NCCL_EXPECT_OK(ranks.run_in_group([&](int rank, ncclComm_t comm) {
    float scalar = static_cast<float>(rank) + 0.5f;
    ncclRedOp_t op;
    NCCL_EXPECT_OK(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, comm));
    NCCL_EXPECT_OK(
        ncclAllReduce(buffers[rank].data(), buffers[rank].data(), kCount, ncclFloat32, op, comm, stream_of(rank)));
    NCCL_EXPECT_OK(ncclRedOpDestroy(op, comm));
  }));
  finish_all();
  for (const auto& buffer : buffers) EXPECT_EQ(buffer, std::vector<float>(kCount, 4.5f));
}

// The call reads the scalar in its stream, after the work that writes it. The reduction is destroyed before the call
// runs.
TEST(Device, DeviceScalarIsRead_WhenItsCallRuns) {
  const NcclRanks ranks(2);
  double values[] = {10, 100}, scalars[] = {-1, -1};
  {
    const StreamGate gate(stream_of(0));
    for (int rank = 0; rank < 2; ++rank) {
      put(stream_of(rank), [&scalar = scalars[rank], rank] { scalar = rank + 2; });
      ncclRedOp_t op;
      NCCL_EXPECT_OK(ncclRedOpCreatePreMulSum(&op, &scalars[rank], ncclFloat64, ncclScalarDevice, ranks[rank]));
      NCCL_EXPECT_OK(ncclAllReduce(&values[rank], &values[rank], 1, ncclFloat64, op, ranks[rank], stream_of(rank)));
      NCCL_EXPECT_OK(ncclRedOpDestroy(op, ranks[rank]));
    }
  }
  finish_all();
  for (const double value : values) EXPECT_EQ(value, 10 * 2 + 100 * 3);
  ncclRedOp_t op;
  char* between = reinterpret_cast<char*>(&scalars[0]) + 1;
  EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, between, ncclFloat64, ncclScalarDevice, ranks[0]), ncclInvalidArgument);
}

TEST(Device, MemAllocReturnsDeviceMemory) {
  release_cached_memory();  // Otherwise the allocation comes from the cache.
  const std::string before = device_usage();
  void* memory = nullptr;
  NCCL_EXPECT_OK(ncclMemAlloc(&memory, 1'000));
  EXPECT_NE(device_usage(), before);
  NCCL_EXPECT_OK(ncclMemFree(memory));
  EXPECT_EQ(device_usage(), before);
  EXPECT_NE(ncclMemFree(memory), ncclSuccess) << "twice";
  NCCL_EXPECT_OK(ncclMemAlloc(&memory, 0));
  EXPECT_EQ(memory, nullptr);
}

// Models programs with one process for all GPUs: windows are registered in a group, and deregistered one after the
// other.
TEST(Device, WindowsMayBeRegistered_InGroup) {
  const NcclRanks ranks(kRanks);
  void* memory[kRanks] = {};
  ncclWindow_t first[kRanks] = {}, second[kRanks] = {};
  for (void*& each : memory) NCCL_EXPECT_OK(ncclMemAlloc(&each, 8192));
  NCCL_EXPECT_OK(ranks.run_in_group([&](int rank, ncclComm_t comm) {
    NCCL_EXPECT_OK(ncclCommWindowRegister(comm, memory[rank], 4096, &first[rank], NCCL_WIN_COLL_SYMMETRIC));
    NCCL_EXPECT_OK(ncclCommWindowRegister(comm, static_cast<char*>(memory[rank]) + 4096, 4096, &second[rank],
                                          rank == 0 ? NCCL_WIN_DEFAULT : NCCL_WIN_COLL_SYMMETRIC));
  }));
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_NE(first[rank], nullptr);
    EXPECT_EQ(second[rank], nullptr);
  }
  EXPECT_EQ(ncclCommWindowDeregister(ranks[1], first[0]), ncclInvalidArgument);
  for (int rank = 0; rank < kRanks; ++rank) {
    NCCL_EXPECT_OK(ncclCommWindowDeregister(ranks[rank], first[rank]));
    NCCL_EXPECT_OK(ncclCommWindowDeregister(ranks[rank], second[rank]));
    NCCL_EXPECT_OK(ncclMemFree(memory[rank]));
  }
}

TEST(Device, WindowsOfNonBlockingCommunicators_AppearLater) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const NcclRanks ranks(kRanks, config);
  void* memory[kRanks] = {};
  ncclWindow_t windows[kRanks] = {};
  for (void*& each : memory) NCCL_EXPECT_OK(ncclMemAlloc(&each, 4096));
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(ncclCommWindowRegister(ranks[rank], memory[rank], 4096, &windows[rank], NCCL_WIN_COLL_SYMMETRIC),
              ncclInProgress);
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(outcome_of(ranks[rank]), ncclSuccess);
    EXPECT_NE(windows[rank], nullptr);
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    NCCL_EXPECT_OK(ncclCommWindowDeregister(ranks[rank], windows[rank]));
    NCCL_EXPECT_OK(ncclMemFree(memory[rank]));
  }
}

TEST(Device, WindowsHaveUserMemory_UntilDeregistered) {
  const NcclRanks ranks(kRanks);
  void* memory[kRanks] = {};
  ncclWindow_t windows[kRanks] = {};
  for (void*& each : memory) NCCL_EXPECT_OK(ncclMemAlloc(&each, 4096));
  NCCL_EXPECT_OK(ranks.run_in_group([&](int rank, ncclComm_t comm) {
    NCCL_EXPECT_OK(ncclCommWindowRegister(comm, memory[rank], 4096, &windows[rank], NCCL_WIN_COLL_SYMMETRIC));
  }));
  void* found = nullptr;
  for (int rank = 0; rank < kRanks; ++rank) {
    NCCL_EXPECT_OK(ncclWinGetUserPtr(ranks[rank], windows[rank], &found));
    EXPECT_EQ(found, memory[rank]);
  }
  EXPECT_EQ(ncclWinGetUserPtr(ranks[1], windows[0], &found), ncclInvalidArgument);
  EXPECT_EQ(found, nullptr);
  expect_error_text("ncclWinGetUserPtr: win is not registered with this communicator");
  EXPECT_EQ(ncclWinGetUserPtr(ranks[0], nullptr, &found), ncclInvalidArgument);
  expect_error_text("win is NULL");
  EXPECT_EQ(ncclWinGetUserPtr(ranks[0], windows[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclWinGetUserPtr(nullptr, windows[0], &found), ncclInvalidArgument);
  ranks.run([&](int rank, ncclComm_t comm) {
    NCCL_EXPECT_OK(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
    NCCL_EXPECT_OK(ncclCommWindowDeregister(comm, windows[rank]));
    void* ended = nullptr;
    EXPECT_EQ(ncclWinGetUserPtr(comm, windows[rank], &ended), ncclInvalidArgument);
    NCCL_EXPECT_OK(ncclMemFree(memory[rank]));
  });
}

TEST(Device, ReportsMemoryOfCommunicator) {
  const NcclRanks ranks(kRanks);
  const auto memory = [&](ncclCommMemStat_t statistic) {
    uint64_t bytes = 77;
    NCCL_EXPECT_OK(ncclCommMemStats(ranks[0], statistic, &bytes));
    return bytes;
  };
  EXPECT_GT(memory(ncclStatGpuMemTotal), 0U);
  EXPECT_EQ(memory(ncclStatGpuMemSuspend), memory(ncclStatGpuMemTotal));
  EXPECT_EQ(memory(ncclStatGpuMemPersist), 0U);
  EXPECT_EQ(memory(ncclStatGpuMemSuspended), 0U);
  uint64_t bytes = 0;
  EXPECT_EQ(ncclCommMemStats(ranks[0], static_cast<ncclCommMemStat_t>(4), &bytes), ncclInvalidArgument);
  expect_error_text("stat is 4; pass ncclStatGpuMemSuspend");
  EXPECT_EQ(ncclCommMemStats(ranks[0], ncclStatGpuMemTotal, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommMemStats(nullptr, ncclStatGpuMemTotal, &bytes), ncclInvalidArgument);
}

TEST(Device, SimulatedGroupsEnqueueNothing) {
  const NcclRanks ranks(kRanks);
  auto buffers = ones();
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  NCCL_EXPECT_OK(ncclGroupStart());
  for (int rank = 0; rank < kRanks; ++rank) NCCL_EXPECT_OK(sum(buffers[rank], ranks[rank], stream_of(rank)));
  NCCL_EXPECT_OK(ncclGroupSimulateEnd(&info));
  EXPECT_GT(info.estimatedTime, 0);
  finish_all();
  expect_all(buffers, 1);
}

// A failed group runs nothing, and leaves communicators usable.
TEST(Device, GroupsReportErrorAgain) {
  const NcclRanks ranks(kRanks);
  auto buffers = ones();
  NCCL_EXPECT_OK(ncclGroupStart());
  NCCL_EXPECT_OK(sum(buffers[0], ranks[0], stream_of(0)));
  EXPECT_EQ(ncclBroadcast(nullptr, nullptr, 1, ncclInt32, 9, ranks[1], stream_of(1)), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  expect_error_text("root 9 is out of range");
  NCCL_EXPECT_OK(ranks.run_in_group(
      [&](int rank, ncclComm_t comm) { NCCL_EXPECT_OK(sum(buffers[rank], comm, stream_of(rank))); }));
  finish_all();
  expect_all(buffers, kRanks);
}

TEST(Device, ThreadsMakeManyCallsConcurrently) {
  const NcclRanks ranks(kRanks);
  auto buffers = ones();
  ranks.run([&](int rank, ncclComm_t comm) {
    for (int call = 0; call < 12; ++call) NCCL_EXPECT_OK(sum(buffers[rank], comm, stream_of(rank)));
    finish(rank);
  });
  expect_all(buffers, 531441);
}

}  // namespace
}  // namespace tutti::test
