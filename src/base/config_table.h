// The table of all environment variables of Tutti: names, defaults, descriptions, and how their values are parsed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/base/config.h"

namespace tutti {

struct ConfigEntry {
  Variable variable;
  const char* wanted;  // Allowed values: "must be ...".
  bool (*set)(Config& config, const std::string& text);
  // Translates NCCL's values into ours. Returns "" for a value without effect.
  std::string (*translate)(const std::string& text, std::vector<std::string>& warnings) = nullptr;
};

std::span<const ConfigEntry> config_entries();

}  // namespace tutti
