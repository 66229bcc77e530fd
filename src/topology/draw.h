// A topology as a picture, and the rings that were chosen in it.
#pragma once

#include <string>
#include <vector>

#include "src/topology/topology.h"

namespace tutti {

struct DrawnRing {
  std::vector<NodeId> trail;      // The last leads to the first.
  std::size_t slowest = 0;        // trail[slowest] and the one behind it.
  std::vector<std::string> ways;  // From each to the one behind it: "NV 50"; none where there is one node only.
};

std::string draw_dot(const Topology& topology, const std::vector<DrawnRing>& rings = {});  // For Graphviz.
// By itself: each host a frame, in it processors above what hangs on them, NVSwitches below. Of links the thickness
// says what they carry, and pointing at one shows it in words. Switches that lead to one thing only are left out. The
// first rings are drawn from GPU to GPU, and below the hosts each as a row; its slowest part is red.
std::string draw_svg(const Topology& topology, const std::vector<DrawnRing>& rings = {});

}  // namespace tutti
