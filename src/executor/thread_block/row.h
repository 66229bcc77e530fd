// How a row of 128 bytes is divided.
#pragma once

#include <cstdint>

namespace tutti {

inline constexpr std::uint32_t kRowBytes = 128;
inline constexpr std::uint32_t kRowData = 120;  // Then the flag.

}  // namespace tutti
