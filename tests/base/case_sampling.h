// Sampling of test cases in sanitizer builds and without optimization, where tests take five to twenty times as long,
// and on the PTX machine. The release build runs all cases.
#pragma once

#include <cstddef>

#include "src/base/config.h"

namespace tutti::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
inline constexpr bool kSlowMotion = true;
#else
inline constexpr bool kSlowMotion = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kFindsRaces = true;
#else
inline constexpr bool kFindsRaces = false;
#endif

// Returns the variable TEST_SAMPLE: tests that sample run one case of this many, in all builds. 0 if it is not set.
inline unsigned requested_sample() {
  const std::string text = Environment::of_process().get("TEST_SAMPLE").value_or("0");
  return static_cast<unsigned>(std::stoul(text));
}

// takes() returns true for every case, but in slow builds only for every `many`-th one, beginning at `from`.
// TEST_SAMPLE replaces `many`. If `many` is coprime to the lengths of the surrounding loops, the sample has each
// value of each loop, but not each pair of values.
class OneOf {
 public:
  explicit OneOf(unsigned many, std::size_t from = 0) : many_(kSlowMotion ? many : 1), count_(from) {
    if (const unsigned requested = requested_sample(); requested > 0) many_ = requested;
  }
  bool takes() { return count_++ % many_ == 0; }

 private:
  unsigned many_;
  std::size_t count_;
};

}  // namespace tutti::test
