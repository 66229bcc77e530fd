// load_pair() with atomic words, for host processors.
#pragma once

#include <cstdint>

namespace tutti {

TUTTI_HOST_DEVICE inline std::uint64_t load_pair(const std::uint64_t* words, std::uint64_t& data) {
  const std::uint64_t flag = load_acquire(words + 1);
  data = load_relaxed(words);
  return flag;
}

}  // namespace tutti
