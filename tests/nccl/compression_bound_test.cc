// A bound on errors chooses a format for the calls that it is for, and is kept.
#include <cmath>
#include <cstdlib>

#include "src/base/instructions.h"
#include "tests/nccl/clients.h"

namespace tutti::test {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kMany = 262'144;
constexpr std::size_t kFew = 1'000;  // Of fewer bytes than calls have to have.
constexpr double kBound = 0.3;

// Read once, when the first communicator is made. Over TCP the kernel takes longer with bytes than encoding does, also
// within a machine.
const bool kSet = ::setenv("TUTTI_TRANSPORT", "tcp", 1) == 0;

// The relative root mean square, of the rank whose is largest. Ranks have the same bits.
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

TEST(CompressionBound, ChoosesAFormatForTheCallsThatItTakes) {
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

TEST(CompressionBound, IsNoneUnlessItIsSet) {
  ASSERT_TRUE(kSet);
  const NcclRanks ranks(kRanks);
  EXPECT_EQ(error_of_sums(ranks, kMany), 0);
}

}  // namespace
}  // namespace tutti::test
