// Floating-point arithmetic in the rounding modes of IEEE 754. Compiled without contraction of a * b + c.
#include <cfenv>
#include <cmath>

#include "tests/ptx/machine/compute.h"

namespace tutti::ptx {
namespace {

template <typename T>
T add_of(T a, T b) {
  return canonical(a + b);
}
template <typename T>
T sub_of(T a, T b) {
  return canonical(a - b);
}
template <typename T>
T mul_of(T a, T b) {
  return canonical(a * b);
}
template <typename T>
T div_of(T a, T b) {
  return canonical(a / b);
}
template <typename T>
T fused(T a, T b, T c) {
  return canonical(std::fma(a, b, c));
}
template <typename T>
T root_of(T a) {
  return canonical(std::sqrt(a));
}
template <typename T>
T reciprocal(T a) {
  return canonical(T{1} / a);
}
// A NaN operand yields the other operand. -0 is less than +0.
template <typename T>
T min_of(T a, T b) {
  if (a != a) return canonical(b);
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <typename T>
T max_of(T a, T b) {
  if (a != a) return canonical(b);
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
template <typename T>
T min_nan(T a, T b) {
  return a != a || b != b ? canonical(a + b) : min_of(a, b);
}
template <typename T>
T max_nan(T a, T b) {
  return a != a || b != b ? canonical(a + b) : max_of(a, b);
}
template <typename T>
T neg_of(T a) {
  return -a;
}
template <typename T>
T abs_of(T a) {
  return std::fabs(a);
}
template <typename T>
T copy_sign(T sign, T value) {
  return std::copysign(value, sign);
}

// Runs a computation in another rounding mode.
template <Compute kRun, int kMode>
void rounded(const Lanes& lanes, const Instruction& in) {
  std::fesetround(kMode);
  kRun(lanes, in);
  std::fesetround(FE_TONEAREST);
}

template <Compute kRun>
void add_rounded(Computations& to, const std::string& name, const std::string& type, Computation computation) {
  to.add(name + ".rn" + type, computation);
  computation.run = rounded<kRun, FE_TOWARDZERO>;
  to.add(name + ".rz" + type, computation);
  computation.run = rounded<kRun, FE_DOWNWARD>;
  to.add(name + ".rm" + type, computation);
  computation.run = rounded<kRun, FE_UPWARD>;
  to.add(name + ".rp" + type, computation);
}

template <typename T>
void add_type(Computations& to, const std::string& type) {
  add_rounded<compute2<add_of<T>, T, T, T>>(to, "add", type, binary<add_of<T>, T, T, T>());
  add_rounded<compute2<sub_of<T>, T, T, T>>(to, "sub", type, binary<sub_of<T>, T, T, T>());
  add_rounded<compute2<mul_of<T>, T, T, T>>(to, "mul", type, binary<mul_of<T>, T, T, T>());
  add_rounded<compute2<div_of<T>, T, T, T>>(to, "div", type, binary<div_of<T>, T, T, T>());
  add_rounded<compute3<fused<T>, T, T, T, T>>(to, "fma", type, ternary<fused<T>, T, T, T, T>());
  add_rounded<compute1<root_of<T>, T, T>>(to, "sqrt", type, unary<root_of<T>, T, T>());
  add_rounded<compute1<reciprocal<T>, T, T>>(to, "rcp", type, unary<reciprocal<T>, T, T>());
  to.add("add" + type, binary<add_of<T>, T, T, T>());
  to.add("sub" + type, binary<sub_of<T>, T, T, T>());
  to.add("mul" + type, binary<mul_of<T>, T, T, T>());
  to.add("min" + type, binary<min_of<T>, T, T, T>());
  to.add("max" + type, binary<max_of<T>, T, T, T>());
  to.add("min.NaN" + type, binary<min_nan<T>, T, T, T>());
  to.add("max.NaN" + type, binary<max_nan<T>, T, T, T>());
  to.add("neg" + type, unary<neg_of<T>, T, T>());
  to.add("abs" + type, unary<abs_of<T>, T, T>());
  to.add("copysign" + type, binary<copy_sign<T>, T, T, T>());
}

}  // namespace

void add_floats(Computations& to) {
  add_type<float>(to, ".f32");
  add_type<double>(to, ".f64");
}

}  // namespace tutti::ptx
