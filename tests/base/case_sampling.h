// Sampling of test cases in sanitizer builds and without optimization, where tests take five to twenty times as long.
// The release build runs all cases.
#pragma once

#include <cstddef>

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

// takes() returns true for every case, but in slow builds only for every `many`-th one, beginning at `from`. If
// `many` is coprime to the lengths of the surrounding loops, the sample has each value of each loop, but not each pair
// of values.
class OneOf {
 public:
  explicit OneOf(unsigned many, std::size_t from = 0) : many_(kSlowMotion ? many : 1), count_(from) {}
  bool takes() { return count_++ % many_ == 0; }

 private:
  unsigned many_;
  std::size_t count_;
};

}  // namespace tutti::test
