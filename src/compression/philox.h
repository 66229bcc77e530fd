// Philox4x32-10, a counter-based random number generator. The result depends only on counter and key, so host and
// device agree in any order of elements. Source: J. Salmon, M. Moraes, R. Dror, D. Shaw: "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011.
#pragma once

#include <cstdint>

#include "src/base/platform.h"

namespace tutti {

struct PhiloxWords {
  std::uint32_t words[4];
};

TUTTI_HOST_DEVICE inline PhiloxWords philox(PhiloxWords counter, std::uint64_t key) {
  auto low = static_cast<std::uint32_t>(key);
  auto high = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xd2511f53u} * counter.words[0];
    const std::uint64_t second = std::uint64_t{0xcd9e8d57u} * counter.words[2];
    counter = {{static_cast<std::uint32_t>(second >> 32) ^ counter.words[1] ^ low, static_cast<std::uint32_t>(second),
                static_cast<std::uint32_t>(first >> 32) ^ counter.words[3] ^ high, static_cast<std::uint32_t>(first)}};
    low += 0x9e3779b9u;
    high += 0xbb67ae85u;
  }
  return counter;
}

// Random word for element `index`.
TUTTI_HOST_DEVICE inline std::uint32_t philox_word(std::uint64_t index, std::uint64_t key) {
  return philox({{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 0, 0}}, key).words[0];
}

}  // namespace tutti
