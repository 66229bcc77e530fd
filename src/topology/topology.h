// What there is: hosts with their NUMA domains, PCI switches, GPUs, NVSwitches and network ports, and the links between
// them. How that was learnt, from files or from the machine, is left to the folders of this room.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace tutti {

enum class NodeKind : std::uint8_t { numa, cpu, pci_switch, gpu, nvswitch, nic, network };
enum class LinkKind : std::uint8_t { memory, smp, pci, nvlink, c2c, network };

const char* name(NodeKind kind);
const char* name(LinkKind kind);
Result<NodeKind> parse_node_kind(std::string_view text);
Result<LinkKind> parse_link_kind(std::string_view text);

inline constexpr std::size_t kMaxNodes = 100'000;      // And hosts.
inline constexpr std::size_t kMaxDomains = 128;        // NUMA domains of a host.
inline constexpr std::uint32_t kDeepestTopology = 64;  // Switches above each other.

using NodeId = std::uint32_t;  // An index of Topology::nodes.

struct Node {
  NodeKind kind = NodeKind::numa;
  std::uint32_t host = 0;   // An index of Topology::hosts.
  std::string name;         // "numa0", "gpu3", "mlx5_0"; no two of a host have the same.
  std::string bus_id;       // Of what is on PCI: "0000:a4:00.0".
  std::string model;        // As its vendor names it; empty where nobody said.
  std::uint32_t index = 0;  // numa: the system's number. gpu: the driver's. nic: of its port, from 1.
  std::uint32_t sm = 0;     // gpu: the compute capability, 90 for 9.0. 0: nobody said.
  bool gpudirect = false;   // gpu, nic: RDMA may reach the memory of GPUs.
  double gbytes_per_s = 0;  // nic: what its port carries each way. 0: nobody said.
  bool down = false;        // nic: the port was not active when it was looked at.
  std::string cpus;         // numa, cpu: its processors as Linux lists them, "0-23,48-71".

  bool operator==(const Node&) const = default;
};

// Carries both ways at once. Of PCI and memory: `a` is nearer to the processor.
struct Link {
  NodeId a = 0;
  NodeId b = 0;
  LinkKind kind = LinkKind::pci;
  double gbytes_per_s = 0;  // Each way: 1e9 bytes of data and their headers, line coding taken off.
  double latency_us = 0;    // One way.
  std::uint32_t width = 1;  // Lanes of PCI, bricks of NVLink.

  bool operator==(const Link&) const = default;
};

struct Topology {
  std::vector<std::string> hosts;  // Their names.
  std::vector<Node> nodes;
  std::vector<Link> links;
  std::vector<std::string> notes;  // What was assumed, and what was odd: a sentence each.

  NodeId add(Node node);
  void connect(const Link& link) { links.push_back(link); }
  // Null where there is none. Of several hosts: the first.
  const Node* find(std::string_view node_name) const;
  std::vector<NodeId> all(NodeKind kind) const;
  std::vector<std::vector<NodeId>> by_host(NodeKind kind) const;  // [host]

  bool operator==(const Topology&) const = default;
};

// Whatever the readers of files and the discovery may have overlooked: links that lead nowhere, names that are not
// unique or would confuse a terminal, rates that are none. Links of PCI and memory lead down from the processor, and
// make trees. invalid_argument says which does not.
Status check(const Topology& topology);
Result<Topology> checked(Topology topology, const std::string& origin);  // The same, of a file.

// Both topologies' hosts. Those of the second come behind.
Topology merged(Topology first, const Topology& second);

}  // namespace tutti
