// The kernels of the product and of benchmarks, compiled for each architecture.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/ptx/machine/module.h"

namespace tutti::ptx {
namespace {

class PtxOfArchitecture : public testing::TestWithParam<const char*> {};

TEST_P(PtxOfArchitecture, Loads) {
  std::ifstream list(std::string(TUTTI_PTX_LISTS) + GetParam() + ".txt");
  if (!list) GTEST_SKIP() << "this nvcc has no compute_" << GetParam();
  int files = 0;
  for (std::string path; std::getline(list, path); ++files) {
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    auto program = Program::parse(text, path);
    ASSERT_TRUE(program.ok()) << std::move(program).status().message();
    EXPECT_EQ(program.value()->target(), std::string("sm_") + GetParam()) << path;
    EXPECT_FALSE(program.value()->kernels().empty()) << path;
  }
  EXPECT_EQ(files, 9);
}

INSTANTIATE_TEST_SUITE_P(All, PtxOfArchitecture, testing::Values("80", "90", "100"),
                         [](const auto& architecture) { return std::string("sm_") + architecture.param; });

}  // namespace
}  // namespace tutti::ptx
