// Layout of an LL128 row of 128 bytes.
#pragma once

#include <cstdint>

namespace tutti {

inline constexpr std::uint32_t kRowBytes = 128;
inline constexpr std::uint32_t kRowData = 120;  // Data bytes; the flag follows.

}  // namespace tutti
