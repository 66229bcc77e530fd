// Enumerators that users know by name, in a table in their order.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "src/base/status.h"

namespace tutti {

template <typename Enum, std::size_t kCount>
struct Named {
  const char* kind;  // What they are: "compression format".
  const char* names[kCount];

  // nullptr for a value that is none.
  constexpr const char* name(Enum value) const {
    const auto index = static_cast<std::size_t>(value);
    return index < kCount ? names[index] : nullptr;
  }

  Result<Enum> parse(std::string_view text) const {
    std::string known;
    for (std::size_t i = 0; i < kCount; ++i) {
      if (text == names[i]) return static_cast<Enum>(i);
      known += (i == 0 ? "" : ", ") + std::string(names[i]);
    }
    return invalid_argument("'" + std::string(text) + "' is no " + kind + "; there are " + known);
  }
};

}  // namespace tutti
