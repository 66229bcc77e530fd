// Under a sanitizer a test takes five to twenty times as long. What sanitizers find shows in a part of the cases; the
// release build tries them all.
#pragma once

#include <cstddef>

namespace tutti::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSlowMotion = true;
#else
inline constexpr bool kSlowMotion = false;
#endif

// Of cases that are counted by takes(), from `from` on, those that `many` divides in slow motion. Where that shares no
// factor with the lengths of the loops around it, each of their values is met, if not each pair of them, once as many
// cases were taken as the longest has values.
class OneOf {
 public:
  explicit OneOf(unsigned many, std::size_t from = 0) : many_(kSlowMotion ? many : 1), count_(from) {}
  bool takes() { return count_++ % many_ == 0; }

 private:
  unsigned many_;
  std::size_t count_;
};

}  // namespace tutti::test
