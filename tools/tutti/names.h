// What there is to choose among, for those who have named something else.
#pragma once

#include <optional>
#include <string>

#include "src/base/status.h"
#include "src/plan/problem.h"

namespace tutti::tool {

// Of each collective: a line break, two spaces, its name and those of its algorithms.
std::string all_algorithms();

// Names the algorithms that there are: of the collective, or of each.
Status no_such_algorithm(const std::string& algorithm, std::optional<Collective> collective);

}  // namespace tutti::tool
