#include "src/base/similar_names.h"

#include <algorithm>
#include <string_view>

#include "src/base/nearest_name.h"

namespace tutti {

std::vector<std::string> similar_names(const Environment& environment, std::span<const Variable> known) {
  constexpr std::string_view kPrefix = "TUTTI_";  // Not compared: it would make short names look alike.
  std::vector<std::string_view> names;
  for (const Variable& variable : known) names.push_back(std::string_view(variable.name).substr(kPrefix.size()));
  std::vector<std::string> warnings;
  for (const auto& [name, value] : environment.variables()) {
    if (!name.starts_with(kPrefix)) continue;
    const std::string_view rest = std::string_view(name).substr(kPrefix.size());
    if (std::find(names.begin(), names.end(), rest) != names.end()) continue;
    const std::string_view nearest = nearest_name(rest, names);
    warnings.push_back("unknown variable " + name + ": " +
                       (nearest.empty() ? "`tutti doctor` lists all variables"
                                        : "did you mean " + std::string(kPrefix) + std::string(nearest) + "?"));
  }
  return warnings;
}

}  // namespace tutti
