// As in NCCL, calls on a device wait without limit unless the environment sets one.
#include <chrono>
#include <cstdlib>

#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

// Set before the library reads it, at its first use. The default of tutti.h becomes 60 ms per call.
[[maybe_unused]] const int scaled = ::setenv("TUTTI_TIMEOUT_SCALE", "0.0001", 1);
[[maybe_unused]] const int no_limit = ::unsetenv("TUTTI_TIMEOUT_MS") + ::unsetenv("TUTTI_INIT_TIMEOUT_MS");

ncclResult_t sum(std::vector<int>& values, ncclComm_t comm, int rank) {
  return ncclAllReduce(values.data(), values.data(), values.size(), ncclInt32, ncclSum, comm, stream_of(rank));
}

// Small and large messages, which wait at different places of the kernel.
TEST(DeviceNoTimeouts, CallWaitsForLateRank) {
  const NcclRanks ranks(2);
  for (const std::size_t count : {std::size_t{1}, std::size_t{20'000}}) {
    std::vector<int> values[] = {std::vector<int>(count, 1), std::vector<int>(count, 2)};
    NCCL_EXPECT_OK(sum(values[0], ranks[0], 0));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // Longer than the default.
    ncclResult_t state = ncclInternalError;
    NCCL_EXPECT_OK(ncclCommGetAsyncError(ranks[0], &state));
    EXPECT_EQ(state, ncclSuccess);
    NCCL_EXPECT_OK(sum(values[1], ranks[1], 1));
    for (int rank = 0; rank < 2; ++rank) {
      finish(rank);
      EXPECT_EQ(values[rank], std::vector<int>(count, 3));
    }
  }
}

}  // namespace
}  // namespace tutti::test
