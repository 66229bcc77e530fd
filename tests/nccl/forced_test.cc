// Calls with a forced algorithm that does not support them.
#include <cstdlib>

#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

// Set before the library reads it, at its first use. The algorithm needs memory of ncclMemAlloc.
[[maybe_unused]] const int forced = ::setenv("TUTTI_ALGORITHM", "two_shot_mapped", 1);

TEST(ForcedAlgorithm, ReportsUnsupportedCall_ByAsyncError) {
  const NcclRanks ranks(2, non_blocking_config());
  int values[] = {1, 2};
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ncclAllReduce(&values[rank], &values[rank], 1, ncclInt32, ncclSum, ranks[rank], nullptr), ncclInProgress);
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome_of(ranks[rank]), ncclInvalidArgument) << "the communicator itself is well";
    expect_error_text("two_shot_mapped");
    EXPECT_EQ(outcome_of(ranks[rank]), ncclInvalidArgument) << "each time";
  }
}

}  // namespace
}  // namespace tutti::test
