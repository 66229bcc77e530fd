// Commercial systems, built from the vendors' published descriptions, for questions about machines other than this one.
#pragma once

#include <string>
#include <string_view>

#include "src/topology/topology.h"

namespace tutti {

// Returns the topology of a system such as "dgx-h100": one host, or all hosts of a rack (gb200-nvl72). Storage and
// management ports are omitted. Returns invalid_argument with the list of presets for an unknown name.
Result<Topology> preset(std::string_view name);
std::string presets();  // Comma-separated names, for messages.

}  // namespace tutti
