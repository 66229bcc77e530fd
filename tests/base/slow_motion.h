// A test takes five to twenty times as long under a sanitizer. Sanitizers find defects in a sample of the cases; the
// release build runs all.
#pragma once

#include <cstddef>

namespace tutti::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSlowMotion = true;
#else
inline constexpr bool kSlowMotion = false;
#endif

// Samples cases that are counted by takes(): under a sanitizer, every `many`-th case from `from` on. If `many` has no
// factor in common with the lengths of the surrounding loops, the sample meets each value of each loop, but not each
// pair of values.
class OneOf {
 public:
  explicit OneOf(unsigned many, std::size_t from = 0) : many_(kSlowMotion ? many : 1), count_(from) {}
  bool takes() { return count_++ % many_ == 0; }

 private:
  unsigned many_;
  std::size_t count_;
};

}  // namespace tutti::test
