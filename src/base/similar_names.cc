#include "src/base/similar_names.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

namespace tutti {
namespace {

constexpr std::string_view kPrefix = "TUTTI_";

// Levenshtein distance, but 0 if `written` is the beginning of `known`: a truncated name needs no edit.
std::size_t distance(std::string_view written, std::string_view known) {
  if (known.starts_with(written)) return 0;
  std::vector<std::size_t> row(known.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= written.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= known.size(); ++j) {
      const std::size_t replaced = diagonal + (written[i - 1] == known[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[known.size()];
}

// The prefix matches by definition, so only the rest counts: one edit for each three characters.
bool is_near(std::string_view written, std::string_view known) {
  const std::size_t longest = std::max(written.size(), known.size()) - kPrefix.size();
  return distance(written, known) <= longest / 3;
}

}  // namespace

std::vector<std::string> similar_names(const Environment& environment, std::span<const Variable> known) {
  std::vector<std::string> warnings;
  for (const auto& [name, value] : environment.variables()) {
    const std::string& written = name;
    if (!written.starts_with(kPrefix) || written == kPrefix) continue;
    if (std::any_of(known.begin(), known.end(), [&](const Variable& one) { return written == one.name; })) continue;
    const auto nearest = std::min_element(known.begin(), known.end(), [&](const Variable& a, const Variable& b) {
      return distance(written, a.name) < distance(written, b.name);
    });
    const bool near = nearest != known.end() && is_near(written, nearest->name);
    warnings.push_back("there is no variable " + written +
                       (near ? std::string(": did you mean ") + nearest->name + "?"
                             : ": it is ignored; tutti doctor lists all variables"));
  }
  return warnings;
}

}  // namespace tutti
