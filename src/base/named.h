// Table of an enumeration's names, in the order of its values.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "src/base/nearest_name.h"
#include "src/base/status.h"

namespace tutti {

template <typename Enum, std::size_t kCount>
struct Named {
  const char* kind;  // Noun for messages: "compression format".
  const char* names[kCount];

  // nullptr for an invalid value.
  constexpr const char* name(Enum value) const {
    const auto index = static_cast<std::size_t>(value);
    return index < kCount ? names[index] : nullptr;
  }

  Result<Enum> parse(std::string_view text) const {
    std::array<std::string_view, kCount> known;
    for (std::size_t i = 0; i < kCount; ++i) {
      if (text == names[i]) return static_cast<Enum>(i);
      known[i] = names[i];
    }
    return invalid_argument("unknown " + std::string(kind) + " '" + std::string(text) +
                            "': " + suggestion(text, known));
  }
};

}  // namespace tutti
