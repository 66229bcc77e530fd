// What NCCL's clients are given where TUTTI_COMPRESS is set, too: the values are such that sums are exact as they are,
// and none is in int4.
#include <cstdlib>

#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kMany = 65'536;  // float32, of which are as many bytes as calls have to have.
constexpr std::size_t kFew = 1'000;

// Read once, when the first communicator is made.
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

class CompressionBeside : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST(CompressionBesideTuttis, IsThatWhereNcclsIsUnset) {
  ASSERT_TRUE(kSet);
  const NcclRanks ranks(kRanks);
  EXPECT_FALSE(reduces_exactly(ranks, kMany));
  EXPECT_FALSE(reduces_exactly(ranks, kFew));
}

TEST_P(CompressionBeside, IsNcclsOfTheCallsThatItTakes) {
  const auto& [variable, value] = GetParam();
  ::setenv(variable, value, 1);
  const NcclRanks ranks(kRanks);
  ::unsetenv(variable);
  EXPECT_TRUE(reduces_exactly(ranks, kMany)) << variable;
  EXPECT_FALSE(reduces_exactly(ranks, kFew)) << variable;
}

// No format keeps to the bound.
INSTANTIATE_TEST_SUITE_P(Raw, CompressionBeside,
                         testing::Values(std::pair("TUTTI_NCCL_COMPRESS", "raw"),
                                         std::pair("TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR", "1e-9")));

}  // namespace
}  // namespace tutti::test
