// Pictures of a topology, with the rings that were chosen.
#pragma once

#include <string>
#include <vector>

#include "src/topology/topology.h"

namespace tutti {

struct DrawnRing {
  std::vector<NodeId> trail;      // In ring order; the last node connects to the first.
  std::size_t slowest = 0;        // Index of the slowest hop: from trail[slowest] to its successor.
  std::vector<std::string> hops;  // Label of each hop, such as "NV 50"; empty if there is one node only.
};

std::string draw_dot(const Topology& topology, const std::vector<DrawnRing>& rings = {});  // Graphviz source.
// Self-contained SVG. Each host is a frame: processors at the top, their devices below, NVSwitches at the bottom. Line
// thickness shows bandwidth; hovering over a link shows its description. PCI switches with a single child are omitted.
// The first ring is also drawn between the GPUs. Below the hosts, each ring is a row with its slowest hop in red.
std::string draw_svg(const Topology& topology, const std::vector<DrawnRing>& rings = {});

}  // namespace tutti
