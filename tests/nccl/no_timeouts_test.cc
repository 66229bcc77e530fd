// As in NCCL, ranks wait without limit unless the environment sets one.
#include <chrono>
#include <cstdlib>

#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

// Set before the library reads it, at its first use. The defaults of tutti.h become 60 ms per call and 12 ms for
// joining.
[[maybe_unused]] const int scaled = ::setenv("TUTTI_TIMEOUT_SCALE", "0.0001", 1);
[[maybe_unused]] const int no_limit = ::unsetenv("TUTTI_TIMEOUT_MS") + ::unsetenv("TUTTI_INIT_TIMEOUT_MS");

// Longer than these defaults.
void be_late() { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }

TEST(NoTimeouts, RanksWaitForLateRank) {
  ncclUniqueId id;
  NCCL_EXPECT_OK(ncclGetUniqueId(&id));
  run_threads(2, [&](int rank) {
    ncclComm_t comm = nullptr, half = nullptr;
    if (rank == 1) be_late();
    NCCL_EXPECT_OK(ncclCommInitRank(&comm, 2, id, rank));
    if (rank == 1) be_late();
    NCCL_EXPECT_OK(ncclCommSplit(comm, 0, rank, &half, nullptr));
    for (const ncclComm_t each : {comm, half}) {
      int value = rank + 1;
      if (rank == 1) be_late();
      NCCL_EXPECT_OK(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, each, nullptr));
      EXPECT_EQ(value, 3);
    }
    NCCL_EXPECT_OK(ncclCommDestroy(half));
    NCCL_EXPECT_OK(ncclCommDestroy(comm));
  });
}

}  // namespace
}  // namespace tutti::test
