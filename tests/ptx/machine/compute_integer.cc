// Integer arithmetic. It wraps around; division by zero gives all ones, as on GPUs.
#include <algorithm>
#include <limits>

#include "tests/ptx/machine/compute.h"

namespace tutti::ptx {
namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;
template <typename T>
using Wider = std::conditional_t<std::is_signed_v<T>, std::conditional_t<sizeof(T) == 2, std::int32_t, std::int64_t>,
                                 std::conditional_t<sizeof(T) == 2, std::uint32_t, std::uint64_t>>;

template <typename T>
T add_of(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
}
template <typename T>
T sub_of(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
}
template <typename T>
T mul_low(T a, T b) {
  return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
template <typename T>
Wider<T> mul_wide(T a, T b) {
  return static_cast<Wider<T>>(static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b));
}
template <typename T>
T mul_high(T a, T b) {
  using Product = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  return static_cast<T>((static_cast<Product>(a) * static_cast<Product>(b)) >> (8 * sizeof(T)));
}
template <typename T>
T mad_low(T a, T b, T c) {
  return add_of(mul_low(a, b), c);
}
template <typename T>
Wider<T> mad_wide(T a, T b, Wider<T> c) {
  return add_of(mul_wide(a, b), c);
}
template <typename T>
T mad_high(T a, T b, T c) {
  return add_of(mul_high(a, b), c);
}
template <typename T>
bool overflows(T a, T b) {
  return std::is_signed_v<T> && a == std::numeric_limits<T>::min() && b == static_cast<T>(-1);
}
template <typename T>
T div_of(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  return overflows(a, b) ? a : static_cast<T>(a / b);
}
template <typename T>
T rem_of(T a, T b) {
  if (b == 0) return a;
  return overflows(a, b) ? T{0} : static_cast<T>(a % b);
}
template <typename T>
T min_of(T a, T b) {
  return std::min(a, b);
}
template <typename T>
T max_of(T a, T b) {
  return std::max(a, b);
}
template <typename T>
T neg_of(T a) {
  return sub_of(T{0}, a);
}
template <typename T>
T abs_of(T a) {
  return a < 0 ? neg_of(a) : a;
}
template <typename T>
T shift_right(T a, std::uint32_t by) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  if (by < kBits) return static_cast<T>(a >> by);
  return a < 0 ? static_cast<T>(-1) : T{0};
}
template <typename T>
T difference(T a, T b, T c) {  // sad
  return add_of(c, a < b ? sub_of(b, a) : sub_of(a, b));
}

template <typename T>
void add_type(Computations& to, const std::string& type) {
  to.add("add." + type, binary<add_of<T>, T, T, T>());
  to.add("sub." + type, binary<sub_of<T>, T, T, T>());
  to.add("mul.lo." + type, binary<mul_low<T>, T, T, T>());
  to.add("mul.hi." + type, binary<mul_high<T>, T, T, T>());
  to.add("mad.lo." + type, ternary<mad_low<T>, T, T, T, T>());
  to.add("mad.hi." + type, ternary<mad_high<T>, T, T, T, T>());
  to.add("div." + type, binary<div_of<T>, T, T, T>());
  to.add("rem." + type, binary<rem_of<T>, T, T, T>());
  to.add("min." + type, binary<min_of<T>, T, T, T>());
  to.add("max." + type, binary<max_of<T>, T, T, T>());
  to.add("shr." + type, binary<shift_right<T>, T, T, std::uint32_t>());
  to.add("sad." + type, ternary<difference<T>, T, T, T, T>());
  if constexpr (std::is_signed_v<T>) {
    to.add("neg." + type, unary<neg_of<T>, T, T>());
    to.add("abs." + type, unary<abs_of<T>, T, T>());
  }
  if constexpr (sizeof(T) < 8) {
    to.add("mul.wide." + type, binary<mul_wide<T>, Wider<T>, T, T>());
    to.add("mad.wide." + type, ternary<mad_wide<T>, Wider<T>, T, T, Wider<T>>());
  }
}

}  // namespace

void add_integers(Computations& to) {
  add_type<std::int16_t>(to, "s16");
  add_type<std::int32_t>(to, "s32");
  add_type<std::int64_t>(to, "s64");
  add_type<std::uint16_t>(to, "u16");
  add_type<std::uint32_t>(to, "u32");
  add_type<std::uint64_t>(to, "u64");
}

}  // namespace tutti::ptx
