#include "tools/tutti/names.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "src/base/nearest_name.h"
#include "tools/tutti/help.h"

namespace tutti::tool {

Status no_such_algorithm(const std::string& algorithm, std::optional<Collective> collective) {
  std::vector<std::string_view> known;
  for (std::uint32_t i = 0; i < kCollectives; ++i) {
    const auto each = static_cast<Collective>(i);
    if (collective.value_or(each) != each) continue;
    for (const Algorithm* one : catalogue(each)) known.emplace_back(one->name());
  }
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return invalid_argument("unknown algorithm '" + algorithm + "'" +
                          (collective ? std::string(" of ") + name(*collective) : "") + ": " +
                          suggestion(algorithm, known));
}

std::string all_algorithms() {
  std::string all;
  for (std::uint32_t i = 0; i < kCollectives; ++i) {
    const auto each = static_cast<Collective>(i);
    const std::string heading = "  " + std::string(name(each)) + ":";
    constexpr std::size_t kIndent = 19;
    const std::string title = heading + std::string(kIndent - heading.size(), ' ');
    std::string lines = wrapped(names_of(each), kIndent, kIndent);
    lines.pop_back();  // The line feed.
    all += "\n" + title + lines;
  }
  return all;
}

}  // namespace tutti::tool
