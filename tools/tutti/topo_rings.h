// What `tutti topo --rings` shows: the rings that GPUs of a topology would get.
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
      drawn;  // Those inside hosts, or inside what NVLinks join; where nothing is to be drawn between GPUs, none.
};

// `gpus`: by the numbers of their driver, on each host; none: all.
Result<TopoRings> rings_of(const Topology& topology, const std::vector<std::uint32_t>& gpus);

// "0,1,5-7"
Result<std::vector<std::uint32_t>> parse_gpus(const std::string& text);

}  // namespace tutti::tool
