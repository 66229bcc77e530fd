// Output of `tutti topo --rings`: the rings of GPUs that collectives would use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/topology/draw.h"
#include "src/topology/topology.h"

namespace tutti::tool {

struct TopoRings {
  std::string text;  // A line for each.
  std::vector<DrawnRing>
      drawn;  // Rings within hosts, or within hosts that NVLinks join; empty if there is nothing to draw.
};

// `gpus`: by the numbers of their driver, on each host; none: all.
Result<TopoRings> rings_of(const Topology& topology, const std::vector<std::uint32_t>& gpus);

// "0,1,5-7"
Result<std::vector<std::uint32_t>> parse_gpus(const std::string& text);

}  // namespace tutti::tool
