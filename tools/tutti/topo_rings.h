// Output of `tutti topo --rings`: the rings of GPUs that collectives would use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/topology/draw.h"
#include "src/topology/topology.h"

namespace tutti::tool {

struct TopoRings {
  std::string text;  // A line per ring.
  std::vector<DrawnRing>
      drawn;  // Rings within a host or within hosts connected by NVLinks; empty if there is nothing to draw.
};

// Returns the rings through `gpus`, the driver's numbers on each host; empty: all GPUs.
Result<TopoRings> rings_of(const Topology& topology, const std::vector<std::uint32_t>& gpus);

// Parses a list such as "0,1,5-7".
Result<std::vector<std::uint32_t>> parse_gpus(const std::string& text);

}  // namespace tutti::tool
