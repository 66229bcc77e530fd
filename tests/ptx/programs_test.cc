// PTX of other architectures, which the stand-in loads in place of that in the programs.
#include <fstream>

#include "tests/ptx/nccl_ranks.h"

namespace tutti::test {
namespace {

// Sums on two devices of the capability, by kernels compiled for the architecture. Returns "right" or an error.
std::string sum_on(const std::string& capability, const std::string& architecture) {
  const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  const Settings settings = {{"TUTTI_PTX_CAPABILITY", capability},
                             {"TUTTI_PTX_PROGRAMS", TUTTI_PTX_LISTS + architecture + ".txt"}};
  return run_nccl_ranks(settings, config, [](const NcclMember& member) -> std::string {
    constexpr std::size_t kElements = 5000;
    int* values = nullptr;
    TUTTI_RETURN_PROBLEM(cudaMalloc(reinterpret_cast<void**>(&values), kElements * sizeof(int)));
    std::vector<int> sum(kElements, member.rank + 1);
    TUTTI_RETURN_PROBLEM(
        cudaMemcpyAsync(values, sum.data(), kElements * sizeof(int), cudaMemcpyDefault, member.stream));
    member.meet.arrive_and_wait();
    TUTTI_RETURN_PROBLEM(ncclAllReduce(values, values, kElements, ncclInt32, ncclSum, member.comm, member.stream));
    TUTTI_RETURN_PROBLEM(cudaStreamSynchronize(member.stream));
    TUTTI_RETURN_PROBLEM(cudaMemcpy(sum.data(), values, kElements * sizeof(int), cudaMemcpyDefault));
    member.meet.arrive_and_wait();
    return sum == std::vector<int>(kElements, 3) ? "right" : "wrong sums";
  });
}

TEST(Programs, RunOnTheirArchitectureAndLaterOnes) {
  EXPECT_EQ(sum_on("80", "80"), "right");
  EXPECT_EQ(sum_on("90", "80"), "right");
}

TEST(Programs, RunOnBlackwell) {
  if (!std::ifstream(std::string(TUTTI_PTX_LISTS) + "100.txt")) GTEST_SKIP() << "this nvcc has no compute_100";
  EXPECT_EQ(sum_on("100", "100"), "right");
}

TEST(Programs, AreRejectedByEarlierArchitectures) {
  const std::string error = sum_on("80", "90");
  EXPECT_NE(error.find("this library has no code for Tutti PTX machine"), std::string::npos) << error;
}

}  // namespace
}  // namespace tutti::test
