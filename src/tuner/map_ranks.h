// Ring search in a topology. NVLinks are preferred, and each link is used up to its capacity. Rings enter and leave a
// host near the port they use. The result is the same on all ranks, because it depends only on state that all ranks
// share.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/rank.h"
#include "src/topology/merged.h"
#include "src/topology/topology.h"
#include "src/tuner/rings.h"

namespace tutti {

inline constexpr NodeId kNoNode = ~0u;
// Returns the GPU with this PCI bus id; kNoNode if there is none.
NodeId gpu_on(const Topology& topology, std::string_view bus_id);

// A ring through devices of one host, or of several hosts connected by NVLinks.
struct NodeRing {
  std::vector<NodeId> nodes;  // The last node connects to the first, or through the port to other hosts.
  // Nearest port of the last node. The first node receives through its own nearest port, the same one if possible.
  NodeId port = kNoNode;
  // The slowest hop, by the bandwidth of that hop alone.
  std::size_t slowest = 0;  // From nodes[slowest] to its successor; nodes.size(): from the port to the first node.

  bool operator==(const NodeRing&) const = default;
};

struct NodeRings {
  std::vector<NodeRing> each;  // Empty: a node is unreachable, or the search would take too long.
  double gbytes_per_s = 0;     // Bandwidth of each ring while all are in use.
  bool only_rings = false;     // All rings use NVLinks, which do not connect each pair of nodes.
  std::uint32_t visits = 0;    // Ring searches: visits in total, for at most two searches (src/tuner/rings.h).
  std::uint64_t steps = 0;     // Path searches between the nodes: nodes and links visited.
};

// Maximum steps of the path searches for a host; beyond, its rings are given up. Nothing else bounds the work, and the
// topology may come from a peer. The 72 GPUs and ports of gb200-nvl72 take a quarter of it.
inline constexpr std::uint64_t kMaxSteps = 1ULL << 26;

// Searches rings through `nodes`: distinct GPUs or NUMA domains, at most kMaxVertices (src/tuner/rings.h), or the
// result is empty. `ports`: network ports by which rings leave the host; empty: rings stay inside.
NodeRings find_node_rings(const Topology& topology, std::span<const NodeId> nodes, std::span<const NodeId> ports,
                          std::uint32_t max_rings = kMaxRings);

// Returns the ports that are up; only those with GPUDirect RDMA if there are any.
std::vector<NodeId> usable_ports(const Topology& topology);
// Returns the nearest port of a device. Equally near ports are assigned by the index of the device. Returns kNoNode if
// there is none.
NodeId nearest_port(const Topology& topology, NodeId device, std::span<const NodeId> ports);

// Location of a rank: index into MergedTopology::kind_of, and a node of that host.
struct RankNode {
  std::uint32_t host = 0;
  NodeId node = kNoNode;
};

struct RankRings {
  // [channel]: order of ranks; ranks of a host are adjacent. Channels beyond use these orders round-robin. Empty: a
  // host is unknown, or rings have no advantage.
  std::vector<std::vector<Rank>> orders;
  double gbytes_per_s = 0;  // Bandwidth of each ring while all are in use.
  bool only_rings = false;  // True if NodeRings::only_rings holds on some host.
};

// Ranks on the same node are adjacent. Hosts are in the order of their first ranks. With several hosts, each ring is
// also used in reverse, unless this exceeds `max_rings`.
RankRings find_rank_rings(const MergedTopology& merged, std::span<const RankNode> rank_nodes,
                          std::uint32_t max_rings = kMaxRings);

}  // namespace tutti
