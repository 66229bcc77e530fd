// Paths between two nodes: the kinds of links used, bandwidth and latency.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/topology/topology.h"

namespace tutti {

// Path kinds in order of preference; names as in NCCL and nvidia-smi.
enum class PathKind : std::uint8_t {
  none,
  same,    // The node itself.
  nvlink,  // NVLink, directly or through NVSwitches.
  c2c,     // NVLink-C2C between a processor and its own GPU.
  pix,     // At most one PCI switch.
  pxb,     // Several PCI switches, no processor.
  phb,     // Through the PCI host bridge of one processor.
  sys,     // Across sockets.
  network,
};

const char* name(PathKind kind);

// Share of a path's traffic that one direction of a link carries.
struct LinkLoad {
  std::uint32_t link = 0;  // Index into Topology::links.
  bool forth = true;       // Direction from `a` to `b`.
  double part = 1;
};

struct NodePath {
  PathKind kind = PathKind::none;
  double gbytes_per_s = 0;      // Per direction. Parallel NVLink paths add up.
  double latency_us = 0;        // One way.
  std::vector<NodeId> nodes;    // From end to end. One of the paths if there are parallel ones.
  std::vector<LinkLoad> loads;  // All links used, including those of parallel paths.
  std::uint64_t steps = 0;      // Nodes and links visited by the search so far; a measure of its cost.
};

// Finds the best path. NVLink paths win; otherwise the widest path, and among equally wide ones the one of least
// latency. Only switches, processors and networks forward traffic. The search visits each link a few times, or up to
// some hundred times where NVLinks are used.
NodePath find_path(const Topology& topology, NodeId from, NodeId to);
// Like find_path(), for several destinations at little more than the cost of one. One search finds how all nodes are
// reached. Each NVLink destination adds a flow computation that visits only switches. Destinations without NVLinks add
// one search per distinct bandwidth. `steps` of each result counts all work up to it.
std::vector<NodePath> find_paths(const Topology& topology, NodeId from, std::span<const NodeId> to);

}  // namespace tutti
