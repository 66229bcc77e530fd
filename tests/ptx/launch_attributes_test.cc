// Attributes with which the library launches plans, on devices that have them and on older ones.
#include "src/executor/cuda/launch_attributes.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "src/executor/cuda/kernel.h"
#include "tests/bootstrap/processes.h"

namespace tutti::test {
namespace {

// Attributes of a launch of this grid, such as "domain cluster spread".
std::string attributes_of(dim3 grid, bool together, bool shares_device = false) {
  const LaunchAttributes attributes(0, plan_kernel(), 1024);
  LaunchAttributes::Room room;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  attributes.add_to(config, room, together, shares_device);
  std::string text;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttributeValue& value = config.attrs[i].val;
    switch (config.attrs[i].id) {
      case cudaLaunchAttributeCooperative: text += value.cooperative != 0 ? "cooperative " : "wrong "; break;
      case cudaLaunchAttributeMemSyncDomain:
        text += value.memSyncDomain == cudaLaunchMemSyncDomainRemote ? "domain " : "wrong ";
        break;
      case cudaLaunchAttributeClusterDimension:
        text += value.clusterDim.x == 4 && value.clusterDim.y == 1 && value.clusterDim.z == 1 ? "cluster " : "wrong ";
        break;
      case cudaLaunchAttributeClusterSchedulingPolicyPreference:
        text += value.clusterSchedulingPolicyPreference == cudaClusterSchedulingPolicySpread ? "spread " : "wrong ";
        break;
      default: text += "unknown ";
    }
  }
  return text;
}

// Runs `body` in a child, which returns a failure or "". The stand-in reads its settings once per process.
std::string on_device(const char* capability, const Processes::Work& body) {
  Processes processes;
  processes.start([&]() -> std::string {
    ::setenv("TUTTI_PTX_CAPABILITY", capability, 1);
    ::setenv("TUTTI_PTX_MULTIPROCESSORS", "64", 1);
    return body();
  });
  return processes.report(0);
}

TEST(LaunchAttributes, FormClusters_WhenChannelsAreMultiples) {
  EXPECT_EQ(on_device("90", [] { return attributes_of(dim3(24), false); }), "domain cluster spread ");
  EXPECT_EQ(on_device("90", [] { return attributes_of(dim3(6), false); }), "domain ");
  EXPECT_EQ(on_device("90", [] { return attributes_of(dim3(1), false); }), "domain ");
}

// All thread blocks of a launch must be resident at once.
TEST(LaunchAttributes, FormNoMoreClustersThanFit) {
  EXPECT_EQ(on_device("90", [] { return attributes_of(dim3(4, 16), false); }), "domain cluster spread ");
  EXPECT_EQ(on_device("90", [] { return attributes_of(dim3(4, 17), false); }), "domain ");
}

TEST(LaunchAttributes, FormNoClusters_WhenRanksShareDevice) {
  EXPECT_EQ(on_device("90", [] { return attributes_of(dim3(24), true, true); }), "cooperative domain ");
  EXPECT_EQ(on_device("90", [] { return attributes_of(dim3(24), false, true); }), "domain ")
      << "ranks of other processes";
}

TEST(LaunchAttributes, AreLeftOut_WhenDeviceLacksThem) {
  EXPECT_EQ(on_device("80", [] { return attributes_of(dim3(24), false); }), "");
  EXPECT_EQ(on_device("80", [] { return attributes_of(dim3(24), true); }), "cooperative ");
}

}  // namespace
}  // namespace tutti::test
