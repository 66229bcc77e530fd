// Checks that NCCL's configuration structs have in common. `initializer` is the macro by which programs initialize
// them.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "src/nccl/abi.h"
#include "src/nccl/errors.h"

namespace tutti::nccl {

// Integer field with its range.
template <typename Config>
struct ConfigField {
  const char* name;
  int Config::*member;
  int min, max;
};

inline constexpr int kNoMaximum = INT_MAX;

// Copies the fields that the program's struct has, which is at least `min_bytes` long.
template <typename Config>
Outcome copy_known(const Config& given, std::size_t min_bytes, const std::string& initializer, Config& known) {
  if (given.magic != kConfigMagic)
    return invalid_argument("config.magic is wrong; initialize config with " + initializer);
  if (given.size < min_bytes)
    return invalid_argument("config.size is " + std::to_string(given.size) + ", but must be at least " +
                            std::to_string(min_bytes) + "; initialize config with " + initializer);
  std::memcpy(static_cast<void*>(&known), &given, std::min(given.size, sizeof known));
  return {};
}

template <typename Config>
Outcome check_range(const ConfigField<Config>& field, int value, const std::string& initializer) {
  if (value >= field.min && value <= field.max) return {};
  return invalid_argument(std::string("config.") + field.name + " is " + std::to_string(value) + "; pass " +
                          std::to_string(field.min) +
                          (field.max == kNoMaximum ? " or more" : " to " + std::to_string(field.max)) +
                          ", or leave it as " + initializer + " sets it");
}

// A bound on channels, and the field or variable that sets it. kUndefined: none.
struct ChannelBound {
  int value = kUndefined;
  std::string source;
};

// kUndefined is the least number, so without a minimum each maximum passes.
inline Outcome check_channels(const ChannelBound& min, const ChannelBound& max) {
  if (max.value == kUndefined || min.value <= max.value) return {};
  return invalid_argument(min.source + " is " + std::to_string(min.value) + ", more than " + max.source + ", " +
                          std::to_string(max.value) + "; lower the minimum or raise the maximum");
}

}  // namespace tutti::nccl
