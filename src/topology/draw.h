// A topology as a picture.
#pragma once

#include <string>

#include "src/topology/topology.h"

namespace tutti {

std::string draw_dot(const Topology& topology);  // For Graphviz.
// By itself: each host a frame, in it processors above what hangs on them, NVSwitches below. Of links the thickness
// says what they carry, and pointing at one shows it in words. Switches that lead to one thing only are left out.
std::string draw_svg(const Topology& topology);

}  // namespace tutti
