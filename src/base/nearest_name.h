// Suggestions for misspelled names: "did you mean all_reduce?".
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tutti {

// The known name that `written` most likely stands for: one that it abbreviates (3 letters or more), or one that
// differs by at most a quarter of the letters (at least one). Ignores case, '-' and '_'. Empty if no name is that
// close.
std::string_view nearest_name(std::string_view written, std::span<const std::string_view> known);

// "did you mean ring?" if a known name is close, else "must be one of ring, tree". Needs one known name or more.
std::string suggestion(std::string_view written, std::span<const std::string_view> known);

}  // namespace tutti
