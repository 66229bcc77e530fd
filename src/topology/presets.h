// Systems that are sold as one, from their makers' published descriptions: for questions about machines that are not
// here.
#pragma once

#include <string>
#include <string_view>

#include "src/topology/topology.h"

namespace tutti {

// "dgx-h100": one host, or of what is a rack (gb200-nvl72) all of its hosts. Storage and management ports are left out.
// invalid_argument names those that there are.
Result<Topology> preset(std::string_view name);
std::string presets();  // Their names, for a sentence.

}  // namespace tutti
