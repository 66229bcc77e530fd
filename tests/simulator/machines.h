// Simple machines, whose times tests compute by hand.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "algorithms/catalogue.h"
#include "tools/simulator/simulate.h"

namespace tutti::simulator::test {

inline constexpr double kNvlinkLatency = 0.25;  // Latency of the topology below; a path has two links.

inline NodeId add_node(Topology& topology, NodeKind kind, const std::string& name, std::uint32_t index = 0) {
  Node node;
  node.kind = kind;
  node.name = name;
  node.index = index;
  return topology.add(node);
}

// Returns a host with GPUs on an NVSwitch. Each GPU has its own network port behind a PCI switch.
inline Topology host_of_gpus(std::uint32_t gpus, double nvlink = 100, double port = 10) {
  Topology topology;
  topology.hosts = {"host"};
  const NodeId numa = add_node(topology, NodeKind::numa, "numa0");
  const NodeId middle = add_node(topology, NodeKind::nvswitch, "nvswitch0");
  for (std::uint32_t i = 0; i < gpus; ++i) {
    const std::string number = std::to_string(i);
    const NodeId above = add_node(topology, NodeKind::pci_switch, "pci" + number);
    const NodeId gpu = add_node(topology, NodeKind::gpu, "gpu" + number, i);
    const NodeId nic = add_node(topology, NodeKind::nic, "nic" + number, 1);
    topology.nodes[nic].gbytes_per_s = port;
    topology.connect({.a = numa, .b = above, .kind = LinkKind::pci, .gbytes_per_s = 50});
    topology.connect({.a = above, .b = gpu, .kind = LinkKind::pci, .gbytes_per_s = 50});
    topology.connect({.a = above, .b = nic, .kind = LinkKind::pci, .gbytes_per_s = 50});
    topology.connect(
        {.a = gpu, .b = middle, .kind = LinkKind::nvlink, .gbytes_per_s = nvlink, .latency_us = kNvlinkLatency});
  }
  return topology;
}

inline Cluster cluster_of(std::uint32_t hosts, std::uint32_t gpus, double nvlink = 100, double port = 10) {
  Cluster cluster;
  cluster.host = host_of_gpus(gpus, nvlink, port);
  cluster.hosts = hosts;
  return cluster;
}

inline Network network_of(const Cluster& cluster) {
  auto network = Network::make(cluster);
  if (!network.ok()) ADD_FAILURE() << std::move(network).status().message();
  return std::move(network).value();
}

// Returns costs with only links and hops; channels take no time.
inline Costs plain_costs(double launch = 5, double hop = 2) {
  Costs costs;
  costs.name = "plain";
  costs.base_us.fill(launch);
  for (auto& hops : costs.hop_us) hops.fill(hop);
  costs.channel_gbytes_per_s.fill(1e9);
  costs.max_channels = 8;
  return costs;
}

inline constexpr double kWay = 2 + 2 * kNvlinkLatency;  // Hop of plain_costs() over NVLinks, with their latency.

struct Wanted {
  Collective collective = Collective::all_reduce;
  std::string_view algorithm;
};

inline Outcome simulated(const Network& network, const Costs& costs, const Wanted& wanted, const Call& call,
                         const Limits& limits = {}) {
  const Problem problem = problem_on(network, wanted.collective);
  auto simulation = Simulation::make(network, costs, *find(wanted.collective, wanted.algorithm), problem, limits);
  if (!simulation.ok()) {
    ADD_FAILURE() << wanted.algorithm << ": " << std::move(simulation).status().message();
    return {};
  }
  auto outcome = simulation.value().run(call);
  if (!outcome.ok()) {
    ADD_FAILURE() << wanted.algorithm << ": " << std::move(outcome).status().message();
    return {};
  }
  return std::move(outcome).value();
}

// Returns a call with one chunk and one channel.
inline Call whole(double bytes) {
  Call call;
  call.bytes = bytes;
  call.chunk_bytes = 1e15;
  return call;
}

}  // namespace tutti::simulator::test
