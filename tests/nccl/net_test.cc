// The transport that ncclConfig_t and the environment select.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "src/nccl/config.h"

namespace tutti::nccl {
namespace {

// Returns the transport for config.netName; "": that of Tutti.
std::string transport_for(const char* net) {
  ncclConfig_t config = {};
  config.size = sizeof config;
  config.magic = kConfigMagic;
  config.version = kVersion;
  config.blocking = config.cgaClusterSize = config.minCTAs = config.maxCTAs = config.splitShare = kUndefined;
  config.trafficClass = config.collnetEnable = config.CTAPolicy = config.shrinkShare = config.nvlsCTAs = kUndefined;
  config.nChannelsPerNetPeer = config.nvlinkCentricSched = kUndefined;
  config.netName = net;
  Settings settings;
  const Outcome outcome = read_config(&config, settings);
  if (outcome.failed()) return outcome.why;
  return settings.tuning.transport == nullptr ? "" : settings.tuning.transport;
}

// Sets a variable for the scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

constexpr const char* kNames[][2] = {{"Socket", "shm+tcp"}, {"ib", "shm+verbs"}, {"UCX", "shm+ucx"}};

TEST(Net, IsThatOfConfig) {
  EXPECT_EQ(transport_for(nullptr), "");
  for (const auto& [net, transport] : kNames) EXPECT_EQ(transport_for(net), transport);
}

TEST(Net, IsThatOfEnvironment_WhenSet) {
  for (const auto& [net, transport] : kNames) {
    const Variable set("NCCL_NET", net);
    EXPECT_EQ(transport_for(nullptr), transport);
    EXPECT_EQ(transport_for("Socket"), transport);
    EXPECT_EQ(transport_for("UCX"), transport);
  }
  const Variable plugin("NCCL_NET", "AWS Libfabric");
  EXPECT_EQ(transport_for("UCX"), "shm+ucx") << "a plugin has no effect";
}

TEST(Net, IsOverriddenByTransport) {
  const Variable transport("TUTTI_TRANSPORT", "tcp"), net("NCCL_NET", "UCX"), disabled("NCCL_IB_DISABLE", "1");
  EXPECT_EQ(transport_for("IB"), "");
}

TEST(Net, IsNotRdma_WhenDisabled) {
  const std::string reason =
      " is IB, but TUTTI_IB_DISABLE or NCCL_IB_DISABLE is 1: unset that, or select Socket or UCX";
  const Variable disabled("NCCL_IB_DISABLE", "1");
  EXPECT_EQ(transport_for("IB"), "config.netName" + reason);
  EXPECT_EQ(transport_for("UCX"), "shm+ucx");
  {
    const Variable net("NCCL_NET", "IB");
    EXPECT_EQ(transport_for("Socket"), "NCCL_NET" + reason);
  }
  {
    const Variable net("NCCL_NET", "Socket");
    EXPECT_EQ(transport_for("IB"), "shm+tcp");
  }
  const Variable allowed("TUTTI_IB_DISABLE", "0");
  EXPECT_EQ(transport_for("IB"), "shm+verbs");
}

}  // namespace
}  // namespace tutti::nccl
