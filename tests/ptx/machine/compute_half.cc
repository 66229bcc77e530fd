// Arithmetic of float16 and bfloat16, and of pairs of them. Results have one rounding: they are computed in double, in
// which products are exact, and rounded to odd before the last rounding.
#include <cmath>

#include "tests/ptx/machine/compute.h"
#include "tests/ptx/machine/half.h"

namespace tutti::ptx {
namespace {

template <typename T>
double wide(T a) {
  return static_cast<double>(widen(a));
}

template <typename T>
T add_half(T a, T b) {
  return narrow<T>(wide(a) + wide(b));
}
template <typename T>
T sub_half(T a, T b) {
  return narrow<T>(wide(a) - wide(b));
}
template <typename T>
T mul_half(T a, T b) {
  return narrow<T>(wide(a) * wide(b));
}

template <typename T>
T fuse_half(T a, T b, T c) {
  const double product = wide(a) * wide(b), sum = product + wide(c);
  const double part = sum - product, error = (product - (sum - part)) + (wide(c) - part);
  const bool exact = !std::isfinite(sum) || error == 0;
  return narrow<T>(exact || is_odd(sum) ? sum : std::nextafter(sum, error > 0 ? HUGE_VAL : -HUGE_VAL));
}

template <typename T>
T neg_half(T a) {
  return {static_cast<std::uint16_t>(a.bits ^ 0x8000U)};
}
template <typename T>
T abs_half(T a) {
  return {static_cast<std::uint16_t>(a.bits & 0x7fffU)};
}

// A NaN operand yields the other operand. -0 is less than +0.
template <typename T>
T min_half(T a, T b) {
  if (a != a) return narrow<T>(wide(b));
  if (b != b) return a;
  if (a == b) return (a.bits & 0x8000U) != 0 ? a : b;
  return a < b ? a : b;
}
template <typename T>
T max_half(T a, T b) {
  if (a != a) return narrow<T>(wide(b));
  if (b != b) return a;
  if (a == b) return (a.bits & 0x8000U) != 0 ? b : a;
  return a > b ? a : b;
}
template <typename T>
T min_half_nan(T a, T b) {
  return a != a || b != b ? T{0x7fff} : min_half(a, b);
}
template <typename T>
T max_half_nan(T a, T b) {
  return a != a || b != b ? T{0x7fff} : max_half(a, b);
}

template <typename T>
T low_of(std::uint32_t pair) {
  return {static_cast<std::uint16_t>(pair)};
}
template <typename T>
T high_of(std::uint32_t pair) {
  return {static_cast<std::uint16_t>(pair >> 16)};
}

// A function of halves, applied to both halves of a register.
template <auto kDo, typename T, typename... Operands>
std::uint32_t in_pairs(Operands... operands) {
  return static_cast<std::uint32_t>(kDo(high_of<T>(operands)...).bits) << 16 | kDo(low_of<T>(operands)...).bits;
}

using Pair = std::uint32_t;
template <auto kDo, typename T>
void add_unary(Computations& to, const std::string& name, const std::string& type) {
  to.add(name + type, unary<kDo, T, T>());
  to.add(name + type + "x2", unary<in_pairs<kDo, T, Pair>, Pair, Pair>());
}
template <auto kDo, typename T>
void add_binary(Computations& to, const std::string& name, const std::string& type) {
  to.add(name + type, binary<kDo, T, T, T>());
  to.add(name + type + "x2", binary<in_pairs<kDo, T, Pair, Pair>, Pair, Pair, Pair>());
}
template <auto kDo, typename T>
void add_ternary(Computations& to, const std::string& name, const std::string& type) {
  to.add(name + type, ternary<kDo, T, T, T, T>());
  to.add(name + type + "x2", ternary<in_pairs<kDo, T, Pair, Pair, Pair>, Pair, Pair, Pair, Pair>());
}

template <typename T>
void add_half_type(Computations& to, const std::string& type) {
  for (const char* const rounding : {"", ".rn"}) {
    add_binary<add_half<T>, T>(to, std::string("add") + rounding, type);
    add_binary<sub_half<T>, T>(to, std::string("sub") + rounding, type);
    add_binary<mul_half<T>, T>(to, std::string("mul") + rounding, type);
  }
  add_ternary<fuse_half<T>, T>(to, "fma.rn", type);
  add_unary<neg_half<T>, T>(to, "neg", type);
  add_unary<abs_half<T>, T>(to, "abs", type);
  add_binary<min_half<T>, T>(to, "min", type);
  add_binary<max_half<T>, T>(to, "max", type);
  add_binary<min_half_nan<T>, T>(to, "min.NaN", type);
  add_binary<max_half_nan<T>, T>(to, "max.NaN", type);
}

}  // namespace

void add_half_arithmetic(Computations& to) {
  add_half_type<Float16Bits>(to, ".f16");
  add_half_type<BFloat16Bits>(to, ".bf16");
}

}  // namespace tutti::ptx
