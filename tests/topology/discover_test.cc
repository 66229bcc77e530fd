// Discovery on a sysfs that the test creates, and on this machine.
#include <gtest/gtest.h>

#include <string>

#include "src/topology/discover/file.h"
#include "src/topology/discover/local_host.h"
#include "src/topology/formats.h"
#include "src/topology/presets.h"
#include "tests/topology/recorded_machine.h"

namespace tutti::test {
namespace {

TEST_F(DiscoveryTest, FindsProcessorsAndCaches) {
  const Topology found = look();
  EXPECT_EQ(found.all(NodeKind::numa).size(), 2u);  // Excludes the one without processors.
  EXPECT_EQ(found.all(NodeKind::cpu).size(), 4u);
  EXPECT_EQ(found.find("cpu1")->cpus, "2-3");
  EXPECT_EQ(found.find("numa1")->cpus, "4-7");
  EXPECT_EQ(found.find("numa0")->model, "GenuineIntel family 6 model 143");
  EXPECT_DOUBLE_EQ(between(found, "numa0", "numa1").gbytes_per_s, 22);
}

TEST_F(DiscoveryTest, FindsDevicesAtTheirPlaces) {
  const Topology found = look();
  EXPECT_EQ(found.all(NodeKind::gpu).size(), 3u);
  EXPECT_EQ(found.find("gpu0")->model, "H100-SXM5-80GB");
  EXPECT_EQ(between(found, "gpu0", "mlx5_0").kind, PathKind::pix);
  EXPECT_NEAR(between(found, "gpu0", "mlx5_0").gbytes_per_s, 63, 0.1);
  EXPECT_EQ(between(found, "gpu1", "mlx5_0").kind, PathKind::phb);
  EXPECT_EQ(between(found, "gpu2", "mlx5_0").kind, PathKind::sys);
  EXPECT_NEAR(between(found, "gpu2", "ens5").gbytes_per_s, 15.75, 0.01);
  EXPECT_EQ(found.find("nic 0000:b1:00.0"), nullptr);  // The disk.
}

TEST_F(DiscoveryTest, FindsRdmaPortsOnce_AndInterfacesOfOtherNics) {
  const Topology found = look();
  EXPECT_EQ(found.all(NodeKind::nic).size(), 3u);
  EXPECT_DOUBLE_EQ(found.find("mlx5_0")->gbytes_per_s, 50);
  EXPECT_FALSE(found.find("mlx5_0")->down);
  ASSERT_NE(found.find("mlx5_0:2"), nullptr);
  EXPECT_TRUE(found.find("mlx5_0:2")->down);
  EXPECT_EQ(between(found, "gpu0", "mlx5_0:2").kind, PathKind::pix);
  EXPECT_EQ(found.find("ib0"), nullptr);
  EXPECT_DOUBLE_EQ(found.find("ens5")->gbytes_per_s, 12.5);
}

// Interfaces appear and disappear in containers.
TEST_F(DiscoveryTest, IgnoresDanglingInterfaces) {
  link("class/net/gone0", "devices/virtual/net/gone0");
  EXPECT_EQ(look().all(NodeKind::nic).size(), 3u);
}

TEST_F(DiscoveryTest, ReportsMissingSources) {
  look();
  ASSERT_FALSE(reports_.empty());
  EXPECT_EQ(reports_.back().source, "NVML");
  EXPECT_FALSE(reports_.back().found);
  EXPECT_NE(reports_.back().words.find("/nonexistent/libnvidia-ml.so.1"), std::string::npos);
  sources_.sys = root_ / "nothing";
  Result<Discovery> blind = discover(sources_);
  ASSERT_FALSE(blind.ok());
  EXPECT_NE(std::move(blind).status().message().find("nothing/devices/system/cpu/online"), std::string::npos);
}

TEST_F(DiscoveryTest, SurvivesRoundTripThroughFiles) {
  const Topology found = look();
  Result<std::string> json = write_topology_json(found);
  if (!json.ok()) GTEST_SKIP() << std::move(json).status().message();
  EXPECT_TRUE(read_topology(json.value(), "json").value() == found);
}

TEST(DiscoveryOfThisMachine, FindsProcessors) {
  Result<Discovery> found = discover();
  ASSERT_TRUE(found.ok()) << std::move(found).status().message();
  EXPECT_FALSE(found.value().topology.all(NodeKind::numa).empty());
}

// hwloc and sysfs read the same files.
TEST(DiscoveryOfThisMachine, IsTheSame_WithHwlocAndSysfs) {
  Result<Discovery> by_hwloc = discover();
  Result<Discovery> by_sysfs = discover({.hwloc = ""});
  ASSERT_TRUE(by_hwloc.ok() && by_sysfs.ok());
  const SourceReport& hwloc = by_hwloc.value().sources.front();
  if (!hwloc.found) GTEST_SKIP() << hwloc.words;
  const Topology &one = by_hwloc.value().topology, &other = by_sysfs.value().topology;
  for (const NodeKind kind : {NodeKind::numa, NodeKind::gpu, NodeKind::nic}) {
    ASSERT_EQ(one.all(kind).size(), other.all(kind).size()) << name(kind);
    for (std::size_t i = 0; i < one.all(kind).size(); ++i) {
      EXPECT_EQ(one.nodes[one.all(kind)[i]].name, other.nodes[other.all(kind)[i]].name);
      EXPECT_EQ(one.nodes[one.all(kind)[i]].cpus, other.nodes[other.all(kind)[i]].cpus);
    }
  }
}

TEST_F(DiscoveryTest, FindsDomainOfCpus) {
  EXPECT_EQ(domain_of_cpus({0}, sources_), 0u);
  const Topology topology = look();
  EXPECT_EQ(domain_of_cpus({4, 7}, sources_), 1u);
  EXPECT_EQ(domain_of_cpus({4, 7}, topology), 1u);
  for (const auto& cpus : {std::vector<std::uint32_t>{3, 4}, {}, {9999}}) {
    EXPECT_EQ(domain_of_cpus(cpus, sources_), std::nullopt);
    EXPECT_EQ(domain_of_cpus(cpus, topology), std::nullopt);
  }
}

TEST_F(DiscoveryTest, FindsDomainOfGpu) {
  EXPECT_EQ(domain_of_device("0000:3b:00.0", sources_), 0u);
  EXPECT_EQ(domain_of_device("0000:af:00.0", sources_), 1u);
  EXPECT_EQ(domain_of_device("0000:99:00.0", sources_), std::nullopt);
  file("devices/pci0000:ae/0000:ae:00.0/0000:af:00.0/numa_node", "-1");  // The firmware does not report it.
  EXPECT_EQ(domain_of_device("0000:af:00.0", sources_), std::nullopt);
  EXPECT_EQ(domain_of_device("../../etc", sources_), std::nullopt);
}

TEST(TopologyFile, SelectsNamedHost) {
  Topology both = merged(preset("dgx-a100").value(), preset("dgx-h100").value());
  const Topology one = only_host(both, "dgx-h100", "a file").value();
  EXPECT_TRUE(check(one).ok());
  EXPECT_EQ(one.nodes.size(), preset("dgx-h100").value().nodes.size());
  EXPECT_EQ(one.links, preset("dgx-h100").value().links);
  EXPECT_EQ(only_host(one, "another", "a file").value(), one);
  EXPECT_EQ(std::move(only_host(both, "another", "a file")).status().message(),
            "a file has 2 hosts, but no host has the name of this one, another");
}

}  // namespace
}  // namespace tutti::test
