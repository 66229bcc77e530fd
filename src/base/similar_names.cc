#include "src/base/similar_names.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "src/base/nearest_name.h"

namespace tutti {
namespace {

constexpr std::pair<const char*, const char*> kRenamedVariables[] = {
    {"TUTTI_WIRE", "TUTTI_COMPRESS"},
    {"TUTTI_WIRE_ROUNDING", "TUTTI_COMPRESS_ROUNDING"},
    {"TUTTI_WIRE_SEED", "TUTTI_COMPRESS_SEED"},
    {"TUTTI_NCCL_WIRE", "TUTTI_NCCL_COMPRESS"},
    {"TUTTI_NCCL_WIRE_COLLECTIVES", "TUTTI_NCCL_COMPRESS_COLLECTIVES"},
    {"TUTTI_NCCL_WIRE_COMMS", "TUTTI_NCCL_COMPRESS_COMMS"},
    {"TUTTI_NCCL_WIRE_MAX_RELATIVE_ERROR", "TUTTI_NCCL_COMPRESS_MAX_RELATIVE_ERROR"},
    {"TUTTI_NCCL_WIRE_MIN_BYTES", "TUTTI_NCCL_COMPRESS_MIN_BYTES"},
    {"TUTTI_NCCL_WIRE_TYPES", "TUTTI_NCCL_COMPRESS_TYPES"},
};

struct RenamedValue {
  const char *variable, *old_name, *new_name;
};
constexpr RenamedValue kRenamedValues[] = {{"TUTTI_CHECK", "wire", "mac"}};

// Returns the new name of a variable, or null.
const char* renamed(std::string_view variable) {
  for (const auto& [old_name, new_name] : kRenamedVariables) {
    if (variable == old_name) return new_name;
  }
  return nullptr;
}

}  // namespace

std::string renamed_variable(const Environment& environment) {
  for (const auto& [name, value] : environment.variables()) {
    const char* new_name = value.empty() ? nullptr : renamed(name);
    if (new_name != nullptr) return name + " was renamed: set " + new_name + " instead";
  }
  return {};
}

std::string renamed_value(std::string_view variable, std::string_view value) {
  for (const RenamedValue& renamed : kRenamedValues) {
    if (variable == renamed.variable && value == renamed.old_name) return renamed.new_name;
  }
  return {};
}

std::vector<std::string> similar_names(const Environment& environment, std::span<const Variable> known) {
  constexpr std::string_view kPrefix = "TUTTI_";  // Not compared: it would make short names look alike.
  std::vector<std::string_view> names;
  for (const Variable& variable : known) names.push_back(std::string_view(variable.name).substr(kPrefix.size()));
  std::vector<std::string> warnings;
  for (const auto& [name, value] : environment.variables()) {
    if (!name.starts_with(kPrefix) || renamed(name) != nullptr) continue;
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
