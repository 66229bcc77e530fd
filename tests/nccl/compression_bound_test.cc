// An error bound selects a format for eligible calls, and holds.
#include <cmath>
#include <cstdlib>

#include "src/base/instructions.h"
#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kMany = 262'144;
constexpr std::size_t kFew = 1'000;  // Fewer bytes than compressed calls must have.
constexpr double kBound = 0.3;

// The library reads the variable once, when the first communicator is created. Over TCP the kernel takes longer per
// byte than encoding, also within a machine.
const bool kSet = ::setenv("TUTTI_TRANSPORT", "tcp", 1) == 0;

// Returns the relative root mean square error of the sums, which are the same on all ranks.
double error_of_sums(const NcclRanks& ranks, std::size_t count) {
  std::vector<std::vector<float>> results(kRanks);
  ranks.run([&](int rank, ncclComm_t comm) {
    std::vector<float>& values = results[rank] = values_of<float>(rank, count);
    NCCL_EXPECT_OK(ncclAllReduce(values.data(), values.data(), count, ncclFloat32, ncclSum, comm, stream_of(rank)));
    finish(rank);
  });
  double error = 0, all = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double sum = sum_of(kRanks, i);
    error += std::pow(results[0][i] - sum, 2);
    all += sum * sum;
  }
  for (int rank = 1; rank < kRanks; ++rank) EXPECT_EQ(results[rank], results[0]);
  return std::sqrt(error / all);
}

TEST(CompressionBound, SelectsFormat_ForEligibleCalls) {
  ASSERT_TRUE(kSet);
  if (widest_instructions() == Instructions::baseline) GTEST_SKIP() << "this CPU encodes too slowly for that";
  ::setenv("TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR", std::to_string(kBound).c_str(), 1);
  const NcclRanks bounded(kRanks);
  ::unsetenv("TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR");
  const double error = error_of_sums(bounded, kMany);
  EXPECT_GT(error, 0) << "it went as it was";
  EXPECT_LT(error, kBound);
  EXPECT_EQ(error_of_sums(bounded, kFew), 0);
}

TEST(CompressionBound, IsOff_ByDefault) {
  ASSERT_TRUE(kSet);
  const NcclRanks ranks(kRanks);
  EXPECT_EQ(error_of_sums(ranks, kMany), 0);
}

}  // namespace
}  // namespace tutti::test
