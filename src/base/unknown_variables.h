// TUTTI_ variables that do not exist, such as misspelled ones.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/base/config.h"

namespace tutti {

// Returns one sentence per unknown variable. Suggests a known name only if it is close.
std::vector<std::string> unknown_variables(const Environment& environment, std::span<const Variable> known);

}  // namespace tutti
