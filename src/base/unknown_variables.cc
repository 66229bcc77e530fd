#include "src/base/unknown_variables.h"

#include <algorithm>
#include <string_view>

#include "src/base/nearest_name.h"

namespace tutti {
namespace {

constexpr std::string_view kPrefix = "TUTTI_";  // Not compared: it would make short names look alike.

// The variable whose name in NCCL ends with `rest`, or the one with the most similar name; empty: none is similar.
std::string_view nearest_variable(std::string_view rest, std::span<const Variable> known) {
  const std::string alias = "NCCL_" + std::string(rest);
  std::vector<std::string_view> names;
  for (const Variable& variable : known) {
    const std::string_view name = std::string_view(variable.name).substr(kPrefix.size());
    if (variable.alias != nullptr && variable.alias == alias) return name;
    names.push_back(name);
  }
  return nearest_name(rest, names);
}

}  // namespace

std::vector<std::string> unknown_variables(const Environment& environment, std::span<const Variable> known) {
  std::vector<std::string> warnings;
  for (const auto& [name, value] : environment.variables()) {
    if (!name.starts_with(kPrefix)) continue;
    if (std::any_of(known.begin(), known.end(), [&](const Variable& each) { return each.name == name; })) continue;
    const std::string_view nearest = nearest_variable(std::string_view(name).substr(kPrefix.size()), known);
    warnings.push_back("unknown variable " + name + ": " +
                       (nearest.empty() ? "`tutti doctor` lists all variables"
                                        : "did you mean " + std::string(kPrefix) + std::string(nearest) + "?"));
  }
  return warnings;
}

}  // namespace tutti
