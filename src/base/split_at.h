// Lists in settings, options and files.
#pragma once

#include <string_view>
#include <vector>

namespace tutti {

// Returns the parts of the text between separators, including empty ones: always at least one. They point into the
// text.
inline std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace tutti
