// Which way rings go through what there is: over NVLinks first, by each link as often as it can carry, in and out of a
// host near the port that they use. It sees only what all ranks share, so that all come to the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/base/rank.h"
#include "src/topology/merged.h"
#include "src/topology/topology.h"
#include "src/tuner/rings.h"

namespace tutti {

inline constexpr NodeId kNoNode = ~0u;

// A ring through devices of one host, or of hosts that NVLinks join.
struct Circuit {
  std::vector<NodeId> nodes;  // The last leads to the first, or by the port to those of other hosts.
  NodeId port = kNoNode;      // The nearest of the last. The first is reached by its own nearest: this one, or near it.
  // The part of it that is slowest, from one of its nodes, or the port, to the next: what that carries alone.
  std::size_t slowest = 0;  // nodes[slowest] and the one behind it; nodes.size(): from the port to the first.

  bool operator==(const Circuit&) const = default;
};

struct Circuits {
  std::vector<Circuit> each;  // Empty: there is no way to some node, or it would take too long to look.
  double gbytes_per_s = 0;    // Of each, while all work at once.
  bool only_rings = false;    // Over NVLinks, which do not lead from each node to each other.
  std::uint32_t visits = 0;   // That the searches took, two at most (src/tuner/rings.h).
  std::uint64_t steps = 0;    // Nodes and links looked at to find the ways between its nodes.
};

// Nodes and links looked at for the ways of a host, before its rings are given up: the topology may be a peer's, and
// nothing else ends this. The 72 GPUs of gb200-nvl72 with their ports take a quarter of it.
inline constexpr std::uint64_t kMaxSteps = 1ULL << 26;

// `nodes`: GPUs or NUMA domains, each once; no more than kMaxStations (src/tuner/rings.h) are looked at. `ports`:
// network ports by which rings leave; none: they stay inside.
Circuits find_circuits(const Topology& topology, std::span<const NodeId> nodes, std::span<const NodeId> ports,
                       std::uint32_t max_rings = kMaxRings);

// The ports that are up; those that RDMA reaches GPUs by, if there are such.
std::vector<NodeId> usable_ports(const Topology& topology);
// The port that a device reaches best; those that are equally good are shared out by the number of the device. kNoNode:
// there is none.
NodeId nearest_port(const Topology& topology, NodeId device, std::span<const NodeId> ports);

// Where a rank is: an index of MergedTopology::kind_of, and a node of that host.
struct Station {
  std::uint32_t host = 0;
  NodeId node = kNoNode;
};

struct RankRings {
  // Of each channel, in turns: the ranks, those of a host one after the other. Empty: nothing is known of some rank's
  // host, or nothing is gained.
  std::vector<std::vector<Rank>> orders;
  double gbytes_per_s = 0;  // Of each, while all work at once.
  bool only_rings = false;  // So it is on some host.
};

// Ranks that share a node come one after the other. Hosts are in the order of their first ranks. Of several hosts each
// ring is there both ways, if that is no more than `max_rings`.
RankRings find_rank_rings(const MergedTopology& merged, std::span<const Station> stations,
                          std::uint32_t max_rings = kMaxRings);

}  // namespace tutti
