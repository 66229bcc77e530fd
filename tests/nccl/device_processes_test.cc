// Suspension of ranks in separate processes, which map each other's device memory.
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "tests/base/pipe.h"
#include "tests/nccl/clients.h"
#include "tests/nccl/device_buffers.h"
#include "tests/nccl/newer_nccl.h"

namespace tutti::test {
namespace {

constexpr int kRanks = 3;

// Rank 0 makes the id and sends it to the others.
ncclComm_t join(int rank, const Pipe& pipe) {
  ncclUniqueId id = {};
  if (rank == 0) {
    NCCL_EXPECT_OK(ncclGetUniqueId(&id));
    for (int other = 1; other < kRanks; ++other) EXPECT_EQ(::write(pipe.writing.get(), &id, sizeof id), sizeof id);
  } else {
    EXPECT_EQ(::read(pipe.reading.get(), &id, sizeof id), sizeof id);
  }
  ncclComm_t comm = nullptr;
  NCCL_EXPECT_OK(ncclCommInitRank(&comm, kRanks, id, rank));
  return comm;
}

void suspend_and_resume(int rank, const Pipe& pipe) {
  stream_of(0);
  const std::string before = device_usage();
  const ncclComm_t comm = join(rank, pipe);
  for (int times = 0; times < 2; ++times) {
    expect_sum(comm, rank, 6);
    EXPECT_NE(device_usage(), before);
    NCCL_EXPECT_OK(ncclCommSuspend(comm, NCCL_SUSPEND_MEM));
    EXPECT_EQ(device_usage(), before) << "rank " << rank;
    NCCL_EXPECT_OK(ncclCommResume(comm));
  }
  expect_sum(comm, rank, 6);
  NCCL_EXPECT_OK(ncclCommDestroy(comm));
}

// Memory that peers have mapped is freed only after they have ended the communicator on the device, too.
TEST(DeviceProcesses, SuspendFreesMemoryThatPeersHadMapped) {
  const Pipe pipe;
  std::vector<pid_t> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      suspend_and_resume(rank, pipe);
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace tutti::test
