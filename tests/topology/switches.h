// Chains and rings of switches, for tests of topologies with and without cycles.
#pragma once

#include <string>

#include "src/topology/topology.h"

namespace tutti::test {

constexpr std::uint32_t kSwitches = 3;

// Returns a chain: no link connects the last switch to the first.
inline Topology chain_of_switches() {
  Topology topology;
  topology.hosts = {""};
  for (std::uint32_t i = 0; i < kSwitches; ++i) {
    Node node;
    node.kind = NodeKind::pci_switch;
    node.name = "switch" + std::to_string(i);
    topology.add(node);
  }
  for (NodeId i = 0; i + 1 < kSwitches; ++i) topology.connect({i, i + 1, LinkKind::pci, 16, 1, 16});
  return topology;
}

inline Topology ring_of_switches() {
  Topology topology = chain_of_switches();
  topology.connect({kSwitches - 1, 0, LinkKind::pci, 16, 1, 16});
  return topology;
}

}  // namespace tutti::test
