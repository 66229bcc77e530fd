#include "tools/simulator/network.h"

#include <gtest/gtest.h>

#include <string>

#include "src/topology/presets.h"
#include "tools/simulator/figures.h"
#include "tools/simulator/simulate.h"

namespace tutti::simulator::test {
namespace {

Cluster preset_cluster(const char* name, std::uint32_t hosts) {
  Cluster cluster;
  cluster.host = preset(name).value();
  cluster.hosts = hosts;
  return cluster;
}

Network network_of(const Cluster& cluster) {
  auto network = Network::make(cluster);
  if (!network.ok()) ADD_FAILURE() << std::move(network).status().message();
  return std::move(network).value();
}

std::string error(const Cluster& cluster) {
  auto network = Network::make(cluster);
  return network.ok() ? "" : std::move(network).status().message();
}

// Returns the links in use, such as "host0 gpu0 nvlinks out, host0 gpu1 nvlinks in".
std::string links_of(const Network& network, Rank from, Rank to) {
  const Route route = network.route(from, to).value();
  std::string text;
  for (std::size_t i = 0; i < route.outs; ++i) text += (text.empty() ? "" : ", ") + network.name(route.out[i]);
  for (std::size_t i = 0; i < route.ins; ++i) text += (text.empty() ? "" : ", ") + network.name(route.in[i]);
  return text;
}

TEST(Network, UsesNvlinks_WithinHost) {
  const Network network = network_of(preset_cluster("dgx-h100", 2));
  EXPECT_EQ(network.ranks(), 16U);
  EXPECT_EQ(links_of(network, 8, 11), "host1 gpu0 nvlinks out, host1 gpu3 nvlinks in");
  const Route route = network.route(8, 11).value();
  EXPECT_EQ(route.links, LinkClass::nvlink);
  EXPECT_DOUBLE_EQ(network.resource(route.out[0]).gbytes_per_s, 450);
}

TEST(Network, UsesNearestPort_BetweenHosts) {
  const Network network = network_of(preset_cluster("dgx-h100", 2));
  const Route route = network.route(3, 11).value();
  EXPECT_EQ(route.links, LinkClass::network);
  EXPECT_NE(links_of(network, 3, 11).find("host0 mlx5_3 out, host1 mlx5_3 in"), std::string::npos)
      << links_of(network, 3, 11);
}

TEST(Network, ReachesOtherRailsAndPods_OverSpine) {
  Cluster cluster = preset_cluster("dgx-h100", 64);
  cluster.oversubscription = 4;
  const Network network = network_of(cluster);
  EXPECT_EQ(links_of(network, 0, 8).find("leaf"), std::string::npos);
  EXPECT_NE(links_of(network, 0, 9).find("leaf0 rail0 up, leaf0 rail1 down"), std::string::npos);
  EXPECT_NE(links_of(network, 0, 40 * 8).find("leaf0 rail0 up, leaf1 rail0 down"), std::string::npos);
  EXPECT_GT(network.route(0, 9).value().latency_us, network.route(0, 8).value().latency_us);
  const Route far = network.route(0, 40 * 8).value();
  EXPECT_DOUBLE_EQ(network.resource(far.out[far.outs - 1]).gbytes_per_s, 50);
  EXPECT_EQ(network.resource(far.out[far.outs - 1]).parallel, 32 / 4U);
  cluster.tiers = 1;
  EXPECT_EQ(links_of(network_of(cluster), 0, 40 * 8).find("leaf"), std::string::npos);
}

TEST(Network, JoinsRackByNvlinks_AndRacksByPorts) {
  const Network network = network_of(preset_cluster("gb200-nvl72", 36));
  EXPECT_EQ(network.ranks(), 144U);
  EXPECT_EQ(network.route(0, 71).value().links, LinkClass::nvlink);
  EXPECT_EQ(network.route(0, 72).value().links, LinkClass::network);
  EXPECT_EQ(error(preset_cluster("gb200-nvl72", 20)), "20 hosts: must be a multiple of the 18 hosts of the topology");
}

TEST(Network, JoinsHostsByNvlinks_WithinRequestedDomain) {
  Cluster cluster = preset_cluster("dgx-b200", 18);
  EXPECT_EQ(network_of(cluster).route(0, 8).value().links, LinkClass::network);
  cluster.hosts_per_nvlink_domain = 9;
  const Network network = network_of(cluster);
  EXPECT_EQ(network.hosts_per_nvlink_domain(), 9U);
  EXPECT_EQ(network.route(0, 71).value().links, LinkClass::nvlink);
  EXPECT_EQ(links_of(network, 0, 71), "host0 gpu0 nvlinks out, host8 gpu7 nvlinks in");
  EXPECT_EQ(network.route(71, 72).value().links, LinkClass::network);
  EXPECT_EQ(network.route(72, 143).value().links, LinkClass::nvlink);
  EXPECT_FALSE(network.switched());
  cluster.hosts_per_nvlink_domain = 18;
  EXPECT_TRUE(network_of(cluster).switched());
}

TEST(Network, DividesRackIntoSmallerNvlinkDomains) {
  Cluster cluster = preset_cluster("gb200-nvl72", 18);
  cluster.hosts_per_nvlink_domain = 2;
  const Network network = network_of(cluster);
  EXPECT_EQ(network.route(0, 7).value().links, LinkClass::nvlink);
  EXPECT_EQ(network.route(7, 8).value().links, LinkClass::network);
  EXPECT_FALSE(network.switched());
}

TEST(Network, RejectsNvlinkDomainsThatDoNotFit) {
  Cluster cluster = preset_cluster("dgx-h100", 6);
  cluster.hosts_per_nvlink_domain = 4;
  EXPECT_EQ(error(cluster), "4 hosts per NVLink domain: must divide the 6 hosts of the cluster");
  cluster.hosts_per_nvlink_domain = 12;
  EXPECT_EQ(error(cluster), "12 hosts per NVLink domain: must divide the 6 hosts of the cluster");
  cluster = preset_cluster("gb200-nvl72", 36);
  cluster.hosts_per_nvlink_domain = 12;
  EXPECT_EQ(error(cluster),
            "12 hosts per NVLink domain: must be a multiple or a divisor of the 18 hosts of the topology");
  cluster = preset_cluster("dgx-h100", 2);
  cluster.hosts_per_nvlink_domain = 2;
  std::erase_if(cluster.host.links, [](const Link& link) { return link.kind == LinkKind::nvlink; });
  EXPECT_EQ(error(cluster),
            "an NVLink domain needs GPUs that are connected to NVSwitches, but the GPUs of dgx-h100 are not");
}

TEST(Problem, HasNvlinkDomainsAsGroups) {
  const auto groups_of = [](const Cluster& cluster) {
    return problem_on(network_of(cluster), Collective::all_reduce).groups;
  };
  EXPECT_TRUE(groups_of(preset_cluster("gb200-nvl72", 18)).empty());
  EXPECT_EQ(groups_of(preset_cluster("gb200-nvl72", 36)), (decltype(Problem::groups){{72, 72}}));
  EXPECT_EQ(groups_of(preset_cluster("dgx-h100", 2)), (decltype(Problem::groups){{8, 8}}));
}

TEST(Network, ReportsSwitchesThatJoinAllRanks) {
  EXPECT_TRUE(network_of(preset_cluster("dgx-h100", 1)).switched());
  EXPECT_FALSE(network_of(preset_cluster("dgx-h100", 2)).switched());
  EXPECT_TRUE(network_of(preset_cluster("gb200-nvl72", 2)).switched());
  EXPECT_FALSE(network_of(preset_cluster("gb200-nvl72", 36)).switched()) << "Two racks.";
  const Network network = network_of(preset_cluster("dgx-h100", 1));
  const Route route = network.through_switches(3);
  ASSERT_EQ(route.outs + route.ins, 2);
  EXPECT_EQ(network.name(route.out[0]) + ", " + network.name(route.in[0]),
            "host0 gpu3 nvlinks out, host0 gpu3 nvlinks in");
  EXPECT_EQ(network.route(3, 3).value().outs, 0) << "A rank needs no link to itself.";
}

TEST(Network, UsesSeveralPortsPerRank_WhenPortsOutnumberRanks) {
  Cluster cluster = preset_cluster("dgx-h100", 2);
  cluster.ranks_per_host = 4;
  const Network network = network_of(cluster);
  const Route route = network.route(0, 4).value();
  double port = 0;
  for (std::size_t i = 0; i < route.outs; ++i)
    if (network.resource(route.out[i]).kind == LinkKind::network) port = network.resource(route.out[i]).gbytes_per_s;
  EXPECT_DOUBLE_EQ(port, 100);
}

// A GPU with all ports of its host is limited by its own link, x16 of PCIe.
TEST(Network, LimitsPorts_ByLinkOfGpu) {
  Cluster cluster = preset_cluster("dgx-h100", 2);
  cluster.ranks_per_host = 1;
  const Network one = network_of(cluster);
  double ports = 0, narrowest = 1e9;
  const Route route = one.route(0, 1).value();
  for (std::size_t i = 0; i < route.outs; ++i) {
    const Resource link = one.resource(route.out[i]);
    if (link.kind == LinkKind::network) ports = link.gbytes_per_s;
    narrowest = std::min(narrowest, link.gbytes_per_s);
  }
  EXPECT_DOUBLE_EQ(ports, 400);
  EXPECT_NEAR(narrowest, 63, 0.1);
  EXPECT_NE(links_of(one, 0, 1).find("gpu0-pci"), std::string::npos) << links_of(one, 0, 1);

  cluster.spread = true;  // Channels of two GPUs share all eight.
  cluster.ranks_per_host = 2;
  const Machine two = network_of(cluster).machine(Costs());
  EXPECT_NEAR(two.levels[1].member_gbytes_per_s, 2 * 63, 0.1);
  cluster.ranks_per_host = 0;
  EXPECT_DOUBLE_EQ(network_of(cluster).machine(Costs()).levels[1].member_gbytes_per_s, 400);
}

TEST(Network, ReplacesFailedPort) {
  Cluster cluster = preset_cluster("dgx-h100", 2);
  cluster.faults = {{"host1:mlx5_3", 0}};
  const Network network = network_of(cluster);
  EXPECT_EQ(links_of(network, 3, 11).find("host1 mlx5_3"), std::string::npos);
  EXPECT_NE(links_of(network, 3, 11).find("host1 mlx5_4 in"), std::string::npos) << links_of(network, 3, 11);
  EXPECT_NE(links_of(network, 11, 3).find("host0 mlx5_3 in"), std::string::npos);
}

TEST(Network, SlowsLinkOfOneHostOnly) {
  Cluster cluster = preset_cluster("dgx-h100", 2);
  cluster.faults = {{"host1:gpu2", 0.5}};
  const Network network = network_of(cluster);
  EXPECT_DOUBLE_EQ(network.resource(network.route(10, 8).value().out[0]).gbytes_per_s, 225);
  EXPECT_DOUBLE_EQ(network.resource(network.route(2, 0).value().out[0]).gbytes_per_s, 450);
}

TEST(Network, RejectsTooManyRoutes) {
  Cluster cluster;
  for (std::uint32_t host = 0; host < 64; ++host) {
    cluster.host.hosts.push_back("host" + std::to_string(host));
    Node numa;
    numa.kind = NodeKind::numa;
    numa.name = "numa0";
    numa.host = host;
    cluster.host.add(numa);
  }
  cluster.hosts = 64;
  cluster.ranks_per_host = 1024;
  EXPECT_NE(error(cluster).find("too many pairs of ranks"), std::string::npos) << error(cluster);
}

// The other ports carry the traffic of a failed port, but all ports wait for a slow one.
TEST(Network, SpreadTrafficWaitsForSlowestPort) {
  Cluster cluster = preset_cluster("dgx-h100", 2);
  cluster.spread = true;
  const auto left = [&](std::vector<Fault> faults) {
    cluster.faults = std::move(faults);
    const Network network = network_of(cluster);
    const Route route = network.route(3, 11).value();
    for (std::size_t i = 0; i < route.outs; ++i)
      if (network.name(route.out[i]).starts_with("host0 mlx")) return network.resource(route.out[i]).gbytes_per_s / 400;
    return 0.0;
  };
  EXPECT_DOUBLE_EQ(left({}), 1);
  EXPECT_DOUBLE_EQ(left({{"host0:mlx5_3", 0.5}}), 0.5);
  EXPECT_DOUBLE_EQ(left({{"host0:mlx5_3", 0}}), 7.0 / 8);
  EXPECT_DOUBLE_EQ(left({{"host0:mlx5_3", 0.5}, {"host0:mlx5_3", 0}, {"host0:mlx5_0", 0.25}}), 7.0 / 32);
  EXPECT_DOUBLE_EQ(left({{"host1:mlx5_3", 0.5}}), 1);
  EXPECT_DOUBLE_EQ(left({{"host0:mlx5_3", 1}}), 1);
  EXPECT_TRUE(network_of(cluster).uniform()) << "Of nothing that is amiss.";
  std::vector<Fault> all;
  for (const char port : std::string("01234567")) all.push_back({std::string("host0:mlx5_") + port, 0});
  cluster.faults = all;
  EXPECT_NE(error(cluster).find("last working port"), std::string::npos) << error(cluster);
}

TEST(Network, NamesFaultyLink_WhenFaultIsInvalid) {
  Cluster cluster = preset_cluster("dgx-h100", 2);
  cluster.faults = {{"host2:mlx5_0", 0.5}};
  EXPECT_EQ(error(cluster), "link 'host2:mlx5_0' must begin with a host from host0: to host1:");
  cluster.faults = {{"host1:mlx9", 0.5}};
  EXPECT_NE(error(cluster).find("host1 has no link 'mlx9': must be one of gpu0, gpu1, "), std::string::npos);
  EXPECT_NE(error(cluster).find(", mlx5_7; PCI links"), std::string::npos);
  EXPECT_LT(error(cluster).size(), 300U);  // One name per GPU and port, not one per direction and PCI link.
  cluster.faults = {{"host1:mlx5_00", 0.5}};
  EXPECT_NE(error(cluster).find("did you mean mlx5_0?"), std::string::npos);
  cluster.faults = {{"host1:gpu1", 0}};
  EXPECT_NE(error(cluster).find("host1:gpu1 has no replacement"), std::string::npos);
  cluster.rails = 1;
  cluster.faults = {{"host1:mlx5_0", 0}};
  EXPECT_NE(error(cluster).find("the last working port of its host"), std::string::npos);
}

TEST(Network, RequiresNumberOfRanks_WithoutGpus) {
  Cluster cluster;
  cluster.host.hosts = {"here"};
  Node domain;
  domain.name = "numa0";
  cluster.host.add(domain);
  EXPECT_EQ(error(cluster), "here has no GPUs; pass --ranks-per-host");
  cluster.ranks_per_host = 1'000'000;
  EXPECT_EQ(error(cluster), "1000000 ranks per host are too many; the maximum is 1024");
  cluster.ranks_per_host = 4;
  const Network network = network_of(cluster);
  EXPECT_EQ(links_of(network, 1, 2), "host0 numa0 memory");
  EXPECT_EQ(network.route(1, 2).value().links, LinkClass::memory);
  cluster.hosts = 2;
  EXPECT_NE(error(cluster).find("no path leads to other hosts"), std::string::npos);
}

TEST(Network, MachineHasLevelsWithinAndBetweenHosts) {
  const Network network = network_of(preset_cluster("dgx-h100", 2));
  Costs costs = costs_of(network.cluster().host, Kernels::nccl).value();
  costs.efficiency.fill(1);
  costs.efficiency[static_cast<std::size_t>(LinkKind::nvlink)] = 0.8;
  costs.efficiency[static_cast<std::size_t>(LinkKind::network)] = 0.9;
  const Machine machine = network.machine(costs);
  ASSERT_EQ(machine.levels.size(), 2U);
  EXPECT_EQ(machine.levels[0].links, LinkClass::nvlink);
  EXPECT_DOUBLE_EQ(machine.levels[0].rank_gbytes_per_s, 450 * 0.8);
  EXPECT_EQ(machine.levels[1].links, LinkClass::network);
  EXPECT_DOUBLE_EQ(machine.levels[1].rank_gbytes_per_s, 50 * 0.9);
  EXPECT_DOUBLE_EQ(machine.levels[1].member_gbytes_per_s, 400 * 0.9);
}

TEST(Figures, AreThoseOfTheGpus) {
  EXPECT_EQ(costs_of(preset("dgx-a100").value(), Kernels::nccl).value().name, "A100");
  EXPECT_EQ(costs_of(preset("dgx-h200").value(), Kernels::nccl).value().name, "H100");
  EXPECT_EQ(costs_of(preset("gb200-nvl72").value(), Kernels::nccl).value().name, "B200");
  EXPECT_EQ(costs_of(Topology{}, Kernels::nccl).value().name, "host memory (rough)");
  Topology unknown = preset("dgx-a100").value();
  for (Node& node : unknown.nodes) node.sm = 0;
  auto costs = costs_of(unknown, Kernels::nccl);
  EXPECT_NE(std::move(costs).status().message().find("--gpu"), std::string::npos);
}

}  // namespace
}  // namespace tutti::simulator::test
