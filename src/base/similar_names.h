// Finds environment variables that begin with TUTTI_ and do not exist, and suggests similar names.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/base/config.h"

namespace tutti {

// Returns one sentence per unknown variable.
std::vector<std::string> similar_names(const Environment& environment, std::span<const Variable> known);

}  // namespace tutti
