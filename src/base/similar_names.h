// TUTTI_ variables that do not exist, misspelled or renamed, and values that were renamed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/config.h"

namespace tutti {

// One sentence per unknown variable that was not renamed. Suggests a known name only if it is close.
std::vector<std::string> similar_names(const Environment& environment, std::span<const Variable> known);

// Error of the first variable whose name has changed; "" if none is set. Ignoring such a variable would change results.
std::string renamed_variable(const Environment& environment);

// New name of a value whose name has changed; "" for other values.
std::string renamed_value(std::string_view variable, std::string_view value);

}  // namespace tutti
