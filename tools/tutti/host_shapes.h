// Layouts of ranks on hosts that commands use if the command line has none.
#pragma once

#include <vector>

#include "tools/tutti/request.h"

namespace tutti::tool {

// Returns the distinct layouts of at least two hosts. A layout with racks has at least two racks with two hosts each.
// Empty for one rank.
std::vector<Groups> host_shapes(Rank ranks);

// Description of the shapes for users.
extern const char* const kHostShapes;

}  // namespace tutti::tool
