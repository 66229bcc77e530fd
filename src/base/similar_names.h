// Warnings about similar_names names of environment variables.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/base/config.h"

namespace tutti {

// One warning for each variable TUTTI_* that does not exist, and for each NCCL_* that is similar to a variable of NCCL
// that Tutti reads. `known` must not be empty.
std::vector<std::string> similar_names(const Environment& environment, std::span<const Variable> known);

}  // namespace tutti
