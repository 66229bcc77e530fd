#include "src/base/similar_names.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

namespace tutti {
namespace {

// Edits that turn a into b; a cut name needs the fewest.
std::size_t distance(std::string_view a, std::string_view b) {
  if (b.starts_with(a)) return 0;
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> similar_names(const Environment& environment, std::span<const Variable> known) {
  std::vector<std::string> warnings;
  for (const auto& [name, value] : environment.variables()) {
    const std::string& written = name;
    if (!written.starts_with("TUTTI_")) continue;
    if (std::any_of(known.begin(), known.end(), [&](const Variable& one) { return written == one.name; })) continue;
    const auto nearest = std::min_element(known.begin(), known.end(), [&](const Variable& a, const Variable& b) {
      return distance(written, a.name) < distance(written, b.name);
    });
    warnings.push_back("there is no variable " + written + ": did you mean " + nearest->name + "?");
  }
  return warnings;
}

}  // namespace tutti
