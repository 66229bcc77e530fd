// Words that stop the thread blocks of a failed communicator, in host memory. Each channel has a word on a cache line
// of its own: a GPU loads a word of host memory for one thread block after the other, a microsecond each (H200), and
// words on different lines for all of them at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/atomic.h"

namespace tutti {

struct FailedWords {
  static constexpr std::uint32_t kCount = 64;
  struct alignas(128) Word {
    std::uint32_t failed = 0;  // Nonzero: the communicator has failed.
  };

  TUTTI_HOST_DEVICE const std::uint32_t* of(std::uint32_t channel) const { return &words[channel % kCount].failed; }
  void set() {
    for (Word& word : words) store_release(&word.failed, 1U);
  }

  Word words[kCount];
};
static_assert(sizeof(FailedWords) == std::size_t{128} * FailedWords::kCount);

}  // namespace tutti
