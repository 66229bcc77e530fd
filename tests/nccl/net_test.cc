// The transport that ncclConfig_t and the environment select.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "src/nccl/config.h"

namespace tutti::nccl {
namespace {

// Returns a config without values.
ncclConfig_t default_config() {
  ncclConfig_t config = {};
  config.size = sizeof config;
  config.magic = kConfigMagic;
  config.version = kVersion;
  config.blocking = config.cgaClusterSize = config.minCTAs = config.maxCTAs = config.splitShare = kUndefined;
  config.trafficClass = config.collnetEnable = config.CTAPolicy = config.shrinkShare = config.nvlsCTAs = kUndefined;
  config.nChannelsPerNetPeer = config.nvlinkCentricSched = kUndefined;
  return config;
}

// Returns the transport for config.netName; "": that of Tutti.
std::string transport_for(const char* net) {
  ncclConfig_t config = default_config();
  config.netName = net;
  Settings settings;
  const Outcome outcome = read_config(&config, settings);
  if (outcome.failed()) return outcome.why;
  return settings.tuning.transport == nullptr ? "" : settings.tuning.transport;
}

// Returns the traffic class of communicators; 0: that of the environment.
std::uint32_t class_for(ncclConfig_t config) {
  Settings settings;
  const Outcome outcome = read_config(&config, settings);
  EXPECT_FALSE(outcome.failed()) << outcome.why;
  return settings.traffic_class;
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

TEST(TrafficClass, IsThatOfConfig) {
  ncclConfig_t config = default_config();
  EXPECT_EQ(class_for(config), 0U);
  config.trafficClass = 106;
  EXPECT_EQ(class_for(config), 106U);
  config.version = 22400;  // Its version does not have the field.
  EXPECT_EQ(class_for(config), 0U);
  config = default_config();
  config.trafficClass = -1;  // NCCL_NET_TRAFFIC_CLASS_UNDEF
  EXPECT_EQ(class_for(config), 0U);
  config.trafficClass = 256;
  EXPECT_EQ(class_for(config), 0U) << "ignored, with a warning";
}

TEST(TrafficClass, IsThatOfEnvironment_WhenSet) {
  ncclConfig_t config = default_config();
  config.trafficClass = 106;
  for (const char* name : {"TUTTI_IB_TC", "NCCL_IB_TC"}) {
    const Variable set(name, "0");
    EXPECT_EQ(class_for(config), 0U) << name;
  }
  for (const char* value : {"-1", "256", "abc"}) {
    const Variable unset("NCCL_IB_TC", value);
    EXPECT_EQ(class_for(config), 106U) << value;
  }
}

}  // namespace
}  // namespace tutti::nccl
