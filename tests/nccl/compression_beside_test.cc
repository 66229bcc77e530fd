// NCCL calls when TUTTI_COMPRESS is set as well. Sums of the values are exact without compression, and none is exact in
// int4.
#include <cstdlib>

#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kMany = 65'536;  // The number of float32 elements from which calls are compressed.
constexpr std::size_t kFew = 1'000;

// The library reads the variable once, when the first communicator is created.
const bool kSet = ::setenv("TUTTI_COMPRESS", "int4", 1) == 0;

bool reduces_exactly(const NcclRanks& ranks, std::size_t count) {
  std::vector<std::vector<float>> results(kRanks);
  ranks.run([&](int rank, ncclComm_t comm) {
    std::vector<float>& values = results[rank] = values_of<float>(rank, count);
    NCCL_EXPECT_OK(ncclAllReduce(values.data(), values.data(), count, ncclFloat32, ncclSum, comm, stream_of(rank)));
    finish(rank);
  });
  std::size_t other = 0;
  for (const std::vector<float>& values : results) {
    for (std::size_t i = 0; i < count; ++i) other += values[i] == static_cast<float>(sum_of(kRanks, i)) ? 0 : 1;
  }
  return other == 0;
}

class NcclCompressionSet : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST(NcclCompressionUnset, FollowsTuttiCompress) {
  ASSERT_TRUE(kSet);
  const NcclRanks ranks(kRanks);
  EXPECT_FALSE(reduces_exactly(ranks, kMany));
  EXPECT_FALSE(reduces_exactly(ranks, kFew));
}

TEST_P(NcclCompressionSet, OverridesTuttiCompress_ForEligibleCalls) {
  const auto& [variable, value] = GetParam();
  ::setenv(variable, value, 1);
  const NcclRanks ranks(kRanks);
  ::unsetenv(variable);
  EXPECT_TRUE(reduces_exactly(ranks, kMany)) << variable;
  EXPECT_FALSE(reduces_exactly(ranks, kFew)) << variable;
}

// No format satisfies the bound.
INSTANTIATE_TEST_SUITE_P(Raw, NcclCompressionSet,
                         testing::Values(std::pair("TUTTI_NCCL_COMPRESS", "raw"),
                                         std::pair("TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR", "1e-9")));

}  // namespace
}  // namespace tutti::test
