// Words by which the thread blocks of a rank announce that they access memory of peers, in host memory. Each channel
// has a word on a cache line of its own, since a GPU accesses the words of a line one after the other; see
// failed_words.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/base/atomic.h"

namespace tutti {

struct AccessWords {
  static constexpr std::uint32_t kCount = 64;  // Maximum channels of a call in memory of peers.
  struct alignas(128) Word {
    std::uint32_t accesses = 0;  // Nonzero: the thread block may be accessing memory of peers.
  };

  TUTTI_HOST_DEVICE std::uint32_t* of(std::uint32_t channel) { return &words[channel].accesses; }
  bool any() const {
    return std::any_of(std::begin(words), std::end(words),
                       [](const Word& word) { return load_acquire(&word.accesses) != 0; });
  }

  Word words[kCount];
};
static_assert(sizeof(AccessWords) == std::size_t{128} * AccessWords::kCount);

}  // namespace tutti
