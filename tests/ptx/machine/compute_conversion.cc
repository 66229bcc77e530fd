// cvt: conversions between integers and floats.
#include <cfenv>
#include <cmath>
#include <limits>

#include "tests/ptx/machine/compute.h"
#include "tests/ptx/machine/half.h"

namespace tutti::ptx {
namespace {

// Results of 8 bits are extended to registers of 16 bits.
template <typename T>
using RegisterOf = std::conditional_t<std::is_same_v<T, std::int8_t>, std::int16_t,
                                      std::conditional_t<std::is_same_v<T, std::uint8_t>, std::uint16_t, T>>;

template <typename R, typename A>
RegisterOf<R> to_integer(A a) {
  return static_cast<RegisterOf<R>>(static_cast<R>(a));
}

template <typename R, typename A>
RegisterOf<R> saturate(A a) {
  using Limits = std::numeric_limits<R>;
  if (std::cmp_less(a, Limits::min())) return Limits::min();
  return std::cmp_greater(a, Limits::max()) ? Limits::max() : static_cast<R>(a);
}

template <typename R, typename A>
R to_float(A a) {
  return static_cast<R>(a);
}

enum class Rounding { nearest, zero, down, up };
template <Rounding kRounding, typename T>
T to_whole(T a) {
  if constexpr (kRounding == Rounding::nearest) return std::nearbyint(a);
  if constexpr (kRounding == Rounding::zero) return std::trunc(a);
  return kRounding == Rounding::down ? std::floor(a) : std::ceil(a);
}

// Saturates. NaN becomes 0, or the highest bit if one of the types has 64 bits. Source: PTX ISA, cvt.
template <Rounding kRounding, typename R, typename A>
RegisterOf<R> float_to_integer(A a) {
  using Limits = std::numeric_limits<R>;
  const A whole = to_whole<kRounding>(a);
  if (whole != whole)
    return sizeof(A) == 8 || sizeof(R) == 8 ? static_cast<RegisterOf<R>>(std::uint64_t{1} << (8 * sizeof(R) - 1)) : 0;
  const A beyond = std::ldexp(A{1}, Limits::digits);  // The first value that is too large.
  if (whole >= beyond) return Limits::max();
  if (whole < static_cast<A>(Limits::min())) return Limits::min();
  return static_cast<R>(whole);
}

template <Half T>
float widened(T a) {
  return widen(a);
}
std::uint32_t halves_of(float high, float low) {
  return static_cast<std::uint32_t>(narrow_float16(high).bits) << 16 | narrow_float16(low).bits;
}
std::uint32_t bfloats_of(float high, float low) {
  return static_cast<std::uint32_t>(narrow_bfloat16(high).bits) << 16 | narrow_bfloat16(low).bits;
}

template <Half T>
double from_half(T a) {
  return static_cast<double>(widen(a));
}

// Keeps 53 bits, of which the last is set if lower bits are. The second rounding is then correct.
template <Half T, typename A>
T half_of_integer(A a) {
  const bool negative = std::cmp_less(a, 0);
  std::uint64_t magnitude = negative ? 0 - static_cast<std::uint64_t>(a) : static_cast<std::uint64_t>(a);
  if (magnitude >> 53 != 0) magnitude = (magnitude >> 11 | ((magnitude & 0x7ff) != 0 ? 1 : 0)) << 11;
  const auto value = static_cast<double>(magnitude);
  return narrow<T>(negative ? -value : value);
}

template <Rounding kRounding, typename R, Half A>
RegisterOf<R> half_to_integer(A a) {
  return float_to_integer<kRounding, R, float>(widen(a));
}

template <Compute kRun, int kMode>
void rounded(const Lanes& lanes, const Instruction& in) {
  std::fesetround(kMode);
  kRun(lanes, in);
  std::fesetround(FE_TONEAREST);
}

template <typename R, typename A>
void add_int_to_float(Computations& to, const std::string& types) {
  Computation computation = unary<to_float<R, A>, R, A>();
  to.add("cvt.rn" + types, computation);
  computation.run = rounded<compute1<to_float<R, A>, R, A>, FE_TOWARDZERO>;
  to.add("cvt.rz" + types, computation);
  computation.run = rounded<compute1<to_float<R, A>, R, A>, FE_DOWNWARD>;
  to.add("cvt.rm" + types, computation);
  computation.run = rounded<compute1<to_float<R, A>, R, A>, FE_UPWARD>;
  to.add("cvt.rp" + types, computation);
}

template <typename R, typename A>
void add_float_to_int(Computations& to, const std::string& types) {
  for (const char* const saturating : {"", ".sat"}) {
    to.add("cvt.rni" + (saturating + types), unary<float_to_integer<Rounding::nearest, R, A>, RegisterOf<R>, A>());
    to.add("cvt.rzi" + (saturating + types), unary<float_to_integer<Rounding::zero, R, A>, RegisterOf<R>, A>());
    to.add("cvt.rmi" + (saturating + types), unary<float_to_integer<Rounding::down, R, A>, RegisterOf<R>, A>());
    to.add("cvt.rpi" + (saturating + types), unary<float_to_integer<Rounding::up, R, A>, RegisterOf<R>, A>());
  }
}

template <Half T, typename I>
void add_half_and_integer(Computations& to, const std::string& half, const std::string& integer) {
  to.add("cvt.rn." + half + "." + integer, unary<half_of_integer<T, I>, T, I>());
  const std::string types = "." + integer + "." + half;
  to.add("cvt.rni" + types, unary<half_to_integer<Rounding::nearest, I, T>, RegisterOf<I>, T>());
  to.add("cvt.rzi" + types, unary<half_to_integer<Rounding::zero, I, T>, RegisterOf<I>, T>());
  to.add("cvt.rmi" + types, unary<half_to_integer<Rounding::down, I, T>, RegisterOf<I>, T>());
  to.add("cvt.rpi" + types, unary<half_to_integer<Rounding::up, I, T>, RegisterOf<I>, T>());
}

template <typename R>
void add_to_integer(Computations& to, const std::string& result) {
  const auto add = [&]<typename A>(A, const std::string& type) {
    to.add("cvt." + result + type, unary<to_integer<R, A>, RegisterOf<R>, A>());
    to.add("cvt.sat." + result + type, unary<saturate<R, A>, RegisterOf<R>, A>());
  };
  add(std::int8_t{}, ".s8");
  add(std::int16_t{}, ".s16");
  add(std::int32_t{}, ".s32");
  add(std::int64_t{}, ".s64");
  add(std::uint8_t{}, ".u8");
  add(std::uint16_t{}, ".u16");
  add(std::uint32_t{}, ".u32");
  add(std::uint64_t{}, ".u64");
  add_float_to_int<R, float>(to, "." + result + ".f32");
  add_float_to_int<R, double>(to, "." + result + ".f64");
  add_int_to_float<float, R>(to, ".f32." + result);
  add_int_to_float<double, R>(to, ".f64." + result);
  add_half_and_integer<Float16Bits, R>(to, "f16", result);
  add_half_and_integer<BFloat16Bits, R>(to, "bf16", result);
}

template <typename T>
void add_whole(Computations& to, const std::string& types) {
  to.add("cvt.rni" + types, unary<to_whole<Rounding::nearest, T>, T, T>());
  to.add("cvt.rzi" + types, unary<to_whole<Rounding::zero, T>, T, T>());
  to.add("cvt.rmi" + types, unary<to_whole<Rounding::down, T>, T, T>());
  to.add("cvt.rpi" + types, unary<to_whole<Rounding::up, T>, T, T>());
}

void add_halves(Computations& to) {
  to.add("cvt.f32.f16", unary<widened<Float16Bits>, float, Float16Bits>());
  to.add("cvt.f32.bf16", unary<widened<BFloat16Bits>, float, BFloat16Bits>());
  to.add("cvt.f64.f16", unary<from_half<Float16Bits>, double, Float16Bits>());
  to.add("cvt.f64.bf16", unary<from_half<BFloat16Bits>, double, BFloat16Bits>());
  to.add("cvt.rn.f16.f64", unary<narrow<Float16Bits>, Float16Bits, double>());
  to.add("cvt.rn.bf16.f64", unary<narrow<BFloat16Bits>, BFloat16Bits, double>());
  to.add("cvt.rn.f16.f32", unary<narrow_float16, Float16Bits, float>());
  to.add("cvt.rn.bf16.f32", unary<narrow_bfloat16, BFloat16Bits, float>());
  to.add("cvt.rn.f16x2.f32", binary<halves_of, std::uint32_t, float, float>());
  to.add("cvt.rn.bf16x2.f32", binary<bfloats_of, std::uint32_t, float, float>());
}

double widen_float(float a) { return static_cast<double>(a); }
float narrow_double(double a) { return canonical(static_cast<float>(a)); }

}  // namespace

void add_conversions(Computations& to) {
  add_to_integer<std::int8_t>(to, "s8");
  add_to_integer<std::int16_t>(to, "s16");
  add_to_integer<std::int32_t>(to, "s32");
  add_to_integer<std::int64_t>(to, "s64");
  add_to_integer<std::uint8_t>(to, "u8");
  add_to_integer<std::uint16_t>(to, "u16");
  add_to_integer<std::uint32_t>(to, "u32");
  add_to_integer<std::uint64_t>(to, "u64");
  add_whole<float>(to, ".f32.f32");
  add_whole<double>(to, ".f64.f64");
  add_halves(to);
  to.add("cvt.f64.f32", unary<widen_float, double, float>());
  Computation narrowing = unary<narrow_double, float, double>();
  to.add("cvt.rn.f32.f64", narrowing);
  narrowing.run = rounded<compute1<narrow_double, float, double>, FE_TOWARDZERO>;
  to.add("cvt.rz.f32.f64", narrowing);
}

}  // namespace tutti::ptx
