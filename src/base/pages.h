// Page sizes, and rounding up to pages or other units.
#pragma once

#include <unistd.h>

#include <cstddef>

namespace tutti {

inline constexpr std::size_t kPageBytes = 4096;  // Minimum on all machines, and the boundary of hardware prefetchers.

// Page size of this machine: a multiple of kPageBytes.
inline std::size_t mapped_page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

constexpr std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace tutti
