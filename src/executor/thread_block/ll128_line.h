// Layout of an LL128 line of 128 bytes.
#pragma once

#include <cstdint>

namespace tutti {

inline constexpr std::uint32_t kLl128LineBytes = 128;
inline constexpr std::uint32_t kLl128LineData = 120;  // Data bytes; the flag follows.

}  // namespace tutti
