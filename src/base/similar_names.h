// Variables of ours that there are not, and which was meant.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/base/config.h"

namespace tutti {

// A sentence for each; `known` has one or more.
std::vector<std::string> similar_names(const Environment& environment, std::span<const Variable> known);

}  // namespace tutti
