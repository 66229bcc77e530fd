// Names of algorithms for help texts and errors.
#pragma once

#include <optional>
#include <string>

#include "src/base/status.h"
#include "src/plan/problem.h"

namespace tutti::tool {

// Returns a line per collective with the names of its algorithms. Each line begins with a line feed.
std::string all_algorithms();

// Returns an error that suggests or lists the algorithms of the collective, or of all collectives.
Status no_such_algorithm(const std::string& algorithm, std::optional<Collective> collective);

}  // namespace tutti::tool
