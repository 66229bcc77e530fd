// store_pair() and load_pair() on a device: one access of 16 bytes, which PTX guarantees not to split.
#pragma once

#include <cstdint>

namespace tutti {

TUTTI_HOST_DEVICE inline void store_pair(std::uint64_t* words, std::uint64_t data, std::uint64_t flag) {
  asm volatile("{ .reg .b128 pair; mov.b128 pair, {%1, %2}; st.relaxed.sys.b128 [%0], pair; }" ::"l"(words), "l"(data),
               "l"(flag)
               : "memory");
}

TUTTI_HOST_DEVICE inline std::uint64_t load_pair(const std::uint64_t* words, std::uint64_t& data) {
  std::uint64_t flag;
  asm volatile("{ .reg .b128 pair; ld.relaxed.sys.b128 pair, [%2]; mov.b128 {%0, %1}, pair; }"
               : "=l"(data), "=l"(flag)
               : "l"(words)
               : "memory");
  return flag;
}

}  // namespace tutti
