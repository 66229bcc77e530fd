// Calls that the environment asks for in a way in which they cannot be made.
#include <cstdlib>

#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

// Before the library looks, at its first use. It needs memory of ncclMemAlloc.
[[maybe_unused]] const int forced = ::setenv("TUTTI_ALGORITHM", "two_shot_mapped", 1);

TEST(Forced, FailureOfACallIsToldByTheAsyncError) {
  const NcclRanks ranks(2, non_blocking_config());
  int values[] = {1, 2};
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ncclAllReduce(&values[rank], &values[rank], 1, ncclInt32, ncclSum, ranks[rank], nullptr), ncclInProgress);
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome_of(ranks[rank]), ncclInvalidArgument) << "the communicator itself is well";
    expect_sentence("two_shot_mapped");
    EXPECT_EQ(outcome_of(ranks[rank]), ncclInvalidArgument) << "each time";
  }
}

}  // namespace
}  // namespace tutti::test
