// How ranks are taken to lie on hosts where the command line does not say it.
#pragma once

#include <vector>

#include "tools/tutti/request.h"

namespace tutti::tool {

// The shapes, each once, of at least two hosts; of the racks, at least two with two hosts each. None for one rank.
std::vector<Groups> host_shapes(Rank ranks);

// Description of the shapes for users.
extern const char* const kHostShapes;

}  // namespace tutti::tool
