// Pages of memory, and sizes in whole ones of them or of other units.
#pragma once

#include <unistd.h>

#include <cstddef>

namespace tutti {

inline constexpr std::size_t kPageBytes = 4096;  // The least of any machine; where hardware prefetchers stop.

// What this machine maps at once: a multiple of kPageBytes.
inline std::size_t mapped_page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

constexpr std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace tutti
