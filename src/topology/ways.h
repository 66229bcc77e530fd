// How far apart two nodes are: over what, how much of it, how long.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/topology/topology.h"

namespace tutti {

// In the order in which one would rather go.
enum class WayKind : std::uint8_t {
  none,
  same,    // Itself.
  nvlink,  // Also over NVSwitches.
  c2c,     // NVLink-C2C between a processor and a GPU of its own.
  pix,     // One PCI switch at most.
  pxb,     // Several, and no processor.
  phb,     // A processor's own PCI.
  sys,     // From socket to socket.
  network,
};

const char* name(WayKind kind);

// What a link carries of what goes a way, in one of its two directions.
struct LinkLoad {
  std::uint32_t link = 0;  // An index of Topology::links.
  bool forth = true;       // From `a` to `b`.
  double part = 1;
};

struct Way {
  WayKind kind = WayKind::none;
  double gbytes_per_s = 0;      // Each way. NVLinks in parallel add up.
  double latency_us = 0;        // One way.
  std::vector<NodeId> nodes;    // From end to end; of several in parallel one.
  std::vector<LinkLoad> loads;  // Of all links that it takes, also in parallel.
  std::uint64_t steps = 0;      // Nodes and links that were looked at to find it.
};

// NVLinks, if they lead there, else the widest way; of these the one of least latency. Only switches and processors
// pass on what is not for them. A link is looked at some times, and where NVLinks lead some hundred times, at most.
Way way(const Topology& topology, NodeId from, NodeId to);
// The same to each of several nodes, for little more than one takes: one search finds how all are reached, and where
// NVLinks lead, only switches are gone through for each. Else a search for each width that ways have. `steps` are those
// up to it.
std::vector<Way> ways(const Topology& topology, NodeId from, std::span<const NodeId> to);

}  // namespace tutti
