// The topology graph: hosts with their NUMA domains, PCI switches, GPUs, NVSwitches and network ports, and the links
// between them. Discovery and file formats are in the subfolders of this module.
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

inline constexpr std::size_t kMaxNodes = 100'000;       // Also the maximum number of hosts.
inline constexpr std::size_t kMaxDomains = 128;         // Maximum NUMA domains per host.
inline constexpr std::uint32_t kMaxTopologyDepth = 64;  // Maximum depth of the PCI tree.

using NodeId = std::uint32_t;  // Index into Topology::nodes.

struct Node {
  NodeKind kind = NodeKind::numa;
  std::uint32_t host = 0;   // Index into Topology::hosts.
  std::string name;         // "numa0", "gpu3", "mlx5_0"; unique within its host.
  std::string bus_id;       // PCI devices only: "0000:a4:00.0".
  std::string model;        // Vendor's model name; empty if unknown.
  std::uint32_t index = 0;  // numa: OS index. gpu: driver index. nic: port number, from 1.
  std::uint32_t sm = 0;     // gpu: compute capability, 90 for 9.0. 0: unknown.
  bool gpudirect = false;   // gpu, nic: GPUDirect RDMA is supported.
  double gbytes_per_s = 0;  // nic: port bandwidth per direction. 0: unknown.
  bool down = false;        // nic: the port was not active at discovery.
  std::string cpus;         // numa, cpu: CPU list in Linux syntax, "0-23,48-71".

  bool operator==(const Node&) const = default;
};

// A full-duplex link. For PCI and memory links, `a` is the end nearer to the processor.
struct Link {
  NodeId a = 0;
  NodeId b = 0;
  LinkKind kind = LinkKind::pci;
  double gbytes_per_s = 0;  // Per direction, in 1e9 bytes/s of data and headers, after line coding.
  double latency_us = 0;    // One way.
  std::uint32_t width = 1;  // PCI lanes or number of NVLinks.

  bool operator==(const Link&) const = default;
};

struct Topology {
  std::vector<std::string> hosts;  // Host names.
  std::vector<Node> nodes;
  std::vector<Link> links;
  std::vector<std::string> notes;  // Assumptions and anomalies, one sentence each.

  NodeId add(Node node);
  void connect(const Link& link) { links.push_back(link); }
  // Returns the first node with this name on any host; null if there is none.
  const Node* find(std::string_view node_name) const;
  std::vector<NodeId> all(NodeKind kind) const;
  std::vector<std::vector<NodeId>> by_host(NodeKind kind) const;  // [host]

  bool operator==(const Topology&) const = default;
};

// Checks invariants that readers and discovery may miss. Names must be unique and printable, rates valid, and links
// must join existing nodes. PCI and memory links must form trees rooted at processors. Returns invalid_argument with
// the first violation.
Status check(const Topology& topology);
// Runs check() and prefixes errors with `origin`.
Result<Topology> checked(Topology topology, const std::string& origin);

// Union of both topologies. The hosts of `second` follow the hosts of `first`.
Topology merged(Topology first, const Topology& second);

}  // namespace tutti
