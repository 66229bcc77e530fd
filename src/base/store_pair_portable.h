// store_pair() with atomic words, for other processors, devices, and ThreadSanitizer.
#pragma once

#include <cstdint>

namespace tutti {

TUTTI_HOST_DEVICE inline void store_pair(std::uint64_t* words, std::uint64_t data, std::uint64_t flag) {
  store_relaxed(words, data);
  store_release(words + 1, flag);
}

}  // namespace tutti
