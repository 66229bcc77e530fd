// Errors where the driver is too old for the runtime, or missing.
#include "tests/ptx/nccl_ranks.h"

namespace tutti::test {
namespace {

constexpr int kMajor = CUDART_VERSION / 1000;

// Returns the error of the first call of a client.
std::string error_with_driver(int version) {
  return run_with({{"TUTTI_PTX_DRIVER", std::to_string(version)}}, []() -> std::string {
    ncclComm_t comm = nullptr;
    const int device = 0;
    const ncclResult_t made = ncclCommInitAll(&comm, 1, &device);
    if (made == ncclSuccess) return problem(ncclCommDestroy(comm), "ncclCommDestroy");
    return ncclGetLastError(nullptr);
  });
}

TEST(OldDriver, IsReportedWithBothVersions) {
  const std::string old = std::to_string(kMajor - 1), needed = std::to_string(kMajor) + ".0";
  const std::string error = error_with_driver((kMajor - 1) * 1000 + 40);
  EXPECT_NE(error.find("the NVIDIA driver is for CUDA " + old + ".4, and this library needs one for " + needed +
                       " or newer: install a newer driver (nvidia-smi shows the installed one), or build the library " +
                       "with the toolkit of CUDA " + old),
            std::string::npos)
      << error;
}

TEST(OldDriver, SupportsNewerRuntimeOfItsMajorVersion) { EXPECT_EQ(error_with_driver(kMajor * 1000), ""); }

TEST(OldDriver, IsMissing) {
  const std::string error = error_with_driver(0);
  EXPECT_NE(error.find("there is no NVIDIA driver on this machine"), std::string::npos) << error;
}

}  // namespace
}  // namespace tutti::test
