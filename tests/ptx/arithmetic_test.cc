// Each instruction against the same computation on the host.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "tests/ptx/lab.h"

namespace tutti::ptx {
namespace {

constexpr std::uint32_t kThreads = 128;

template <typename T>
struct TypeText;
template <>
struct TypeText<std::uint16_t> {
  static constexpr const char* kType = "b16";
  static constexpr const char* kRegister = "%h";
};
template <>
struct TypeText<std::uint32_t> {
  static constexpr const char* kType = "b32";
  static constexpr const char* kRegister = "%r";
};
template <>
struct TypeText<std::uint64_t> {
  static constexpr const char* kType = "b64";
  static constexpr const char* kRegister = "%d";
};
template <>
struct TypeText<float> {
  static constexpr const char* kType = "f32";
  static constexpr const char* kRegister = "%f";
};
template <>
struct TypeText<double> {
  static constexpr const char* kType = "f64";
  static constexpr const char* kRegister = "%e";
};

template <typename T>
T random_value(std::mt19937_64& random) {
  const std::uint64_t bits = random();
  switch (random() % 4) {
    case 0: {  // An edge.
      constexpr int kShifts[] = {0, 1, 7, 8, 15, 16, 31, 32, 63};
      const std::uint64_t edge = (std::uint64_t{1} << kShifts[bits % 9]) - (bits >> 32 & 1);
      if constexpr (std::is_floating_point_v<T>)
        return static_cast<T>(static_cast<std::int64_t>(edge)) / ((bits >> 40 & 1) ? 3 : -1);
      return static_cast<T>(edge);
    }
    case 1:
      if constexpr (std::is_floating_point_v<T>) {
        const T special[] = {0,
                             -T{0},
                             std::numeric_limits<T>::infinity(),
                             std::numeric_limits<T>::quiet_NaN(),
                             std::numeric_limits<T>::denorm_min(),
                             std::numeric_limits<T>::max()};
        return special[bits % 6];
      }
      return static_cast<T>(bits % 70);
    default:
      if constexpr (std::is_same_v<T, float>) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      if constexpr (std::is_same_v<T, double>) return std::bit_cast<double>(bits);
      return static_cast<T>(bits);
  }
}

template <typename T>
bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a && b != b) return true;
    return std::memcmp(&a, &b, sizeof a) == 0;
  } else {
    return a == b;
  }
}

template <typename T>
std::string load_operand(std::size_t i) {
  const std::string number = std::to_string(i), size = std::to_string(sizeof(T));
  return "ld.param.u64 %d20, [in" + number + "];\nmad.wide.u32 %d21, %r40, " + size + ", %d20;\nld.global." +
         std::string(TypeText<T>::kType) + " " + TypeText<T>::kRegister + std::to_string(i + 1) + ", [%d21];\n";
}

// Checks `opcode` %result, %operands... for random values.
template <typename R, typename... A, typename F>
void expect_computes(const std::string& opcode, F expected) {
  Lab lab;
  std::mt19937_64 random(std::hash<std::string>()(opcode));
  auto inputs = std::make_tuple(lab.make<A>(kThreads)...);
  R* const output = lab.make<R>(kThreads);
  std::apply(
      [&](auto*... in) {
        for (std::uint32_t i = 0; i < kThreads; ++i)
          ((in[i] = random_value<std::remove_pointer_t<decltype(in)>>(random)), ...);
      },
      inputs);
  std::string parameters = ".param .u64 out", body = "mov.u32 %r40, %tid.x;\n", operands;
  std::size_t i = 0;
  const auto add = [&]<typename T>(T*) {
    parameters += ", .param .u64 in" + std::to_string(i);
    body += load_operand<T>(i);
    operands += ", " + std::string(TypeText<T>::kRegister) + std::to_string(i + 1);
    ++i;
  };
  std::apply([&](auto*... in) { (add(in), ...); }, inputs);
  const std::string result = std::string(TypeText<R>::kRegister) + "10";
  body += opcode + " " + result + operands + ";\nld.param.u64 %d22, [out];\nmad.wide.u32 %d23, %r40, " +
          std::to_string(sizeof(R)) + ", %d22;\nst.global." + TypeText<R>::kType + " [%d23], " + result + ";";
  const auto fault = std::apply(
      [&](auto*... in) {
        return lab.run(kernel_text(parameters, body), {}, {kThreads, 1, 1}, output, in...);
      },
      inputs);
  ASSERT_FALSE(fault) << fault->text;
  for (std::uint32_t n = 0; n < kThreads; ++n) {
    const R wanted = std::apply([&](auto*... in) { return static_cast<R>(expected(in[n]...)); }, inputs);
    ASSERT_TRUE(same(output[n], wanted)) << opcode << " of thread " << n << ": " << +output[n] << " instead of "
                                         << +wanted;
  }
}

using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;
using S16 = std::int16_t;
using S32 = std::int32_t;
using S64 = std::int64_t;

TEST(PtxArithmetic, ComputesIntegers) {
  expect_computes<U32, U32, U32>("add.s32", [](U32 a, U32 b) { return a + b; });
  expect_computes<U64, U64, U64>("sub.s64", [](U64 a, U64 b) { return a - b; });
  expect_computes<U16, U16, U16>("mul.lo.s16", [](U16 a, U16 b) { return static_cast<U16>(U32{a} * b); });
  expect_computes<U64, U64, U64>(
      "mul.hi.u64", [](U64 a, U64 b) { return static_cast<U64>(static_cast<unsigned __int128>(a) * b >> 64); });
  expect_computes<U32, U32, U32>("mul.hi.s32", [](U32 a, U32 b) {
    return static_cast<U32>(S64{static_cast<S32>(a)} * static_cast<S32>(b) >> 32);
  });
  expect_computes<U64, U32, U32>(
      "mul.wide.s32", [](U32 a, U32 b) { return static_cast<U64>(S64{static_cast<S32>(a)} * static_cast<S32>(b)); });
  expect_computes<U32, U32, U32, U32>("mad.lo.s32", [](U32 a, U32 b, U32 c) { return a * b + c; });
  expect_computes<U64, U32, U32, U64>("mad.wide.u32", [](U32 a, U32 b, U64 c) { return U64{a} * b + c; });
  expect_computes<U32, U32, U32>("div.u32", [](U32 a, U32 b) { return b == 0 ? ~0U : a / b; });
  expect_computes<U64, U64, U64>("rem.u64", [](U64 a, U64 b) { return b == 0 ? a : a % b; });
  expect_computes<U16, U16, U16>("min.s16",
                                 [](U16 a, U16 b) { return std::min(static_cast<S16>(a), static_cast<S16>(b)); });
  expect_computes<U64, U64, U64>("max.u64", [](U64 a, U64 b) { return std::max(a, b); });
  expect_computes<U32, U32>("neg.s32", [](U32 a) { return 0 - a; });
  expect_computes<U32, U32>("abs.s32", [](U32 a) { return static_cast<S32>(a) < 0 ? 0 - a : a; });
}

TEST(PtxArithmetic, ComputesBits) {
  expect_computes<U32, U32, U32>("and.b32", [](U32 a, U32 b) { return a & b; });
  expect_computes<U16, U16, U16>("xor.b16", [](U16 a, U16 b) { return a ^ b; });
  expect_computes<U64, U64>("not.b64", [](U64 a) { return ~a; });
  expect_computes<U64, U64, U32>("shl.b64", [](U64 a, U32 by) { return by > 63 ? 0 : a << by; });
  expect_computes<U32, U32, U32>("shr.u32", [](U32 a, U32 by) { return by > 31 ? 0 : a >> by; });
  expect_computes<U16, U16, U32>("shr.s16", [](U16 a, U32 by) { return static_cast<S16>(a) >> std::min(by, 15U); });
  expect_computes<U32, U64>("popc.b64", [](U64 a) { return std::popcount(a); });
  expect_computes<U32, U32>("clz.b32", [](U32 a) { return std::countl_zero(a); });
  expect_computes<U32, U32, U32, U32>("prmt.b32", [](U32 a, U32 b, U32 c) {
    U32 result = 0;
    for (U32 i = 0; i < 4; ++i) {
      const U32 pick = c >> 4 * i & 15, byte = (pick & 4 ? b : a) >> 8 * (pick & 3) & 255;
      result |= (pick & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * i;
    }
    return result;
  });
  expect_computes<U32, U32, U32, U32>(
      "shf.l.wrap.b32", [](U32 a, U32 b, U32 c) { return static_cast<U32>((U64{b} << 32 | a) << (c & 31) >> 32); });
  expect_computes<U32, U32, U32, U32>("bfe.u32", [](U32 a, U32 b, U32 c) {
    const U32 at = b & 255, length = c & 255;
    return at > 31 ? 0 : (length > 31 ? a >> at : (a >> at) & ((1U << length) - 1));
  });
  expect_computes<U64, U64, U64, U32, U32>("bfi.b64", [](U64 a, U64 b, U32 c, U32 d) {
    const U32 at = c & 255, length = d & 255;
    U64 result = b;
    for (U32 i = 0; i < length && at + i < 64 && i < 64; ++i)
      result = (result & ~(U64{1} << (at + i))) | ((a >> i & 1) << (at + i));
    return result;
  });
}

TEST(PtxArithmetic, ComputesFloats) {
  expect_computes<float, float, float>("add.rn.f32", [](float a, float b) { return a + b; });
  expect_computes<float, float, float>("mul.rn.f32", [](float a, float b) { return a * b; });
  expect_computes<double, double, double>("add.rn.f64", [](double a, double b) { return a + b; });
  expect_computes<float, float, float>("div.rn.f32", [](float a, float b) { return a / b; });
  expect_computes<double, double>("rcp.rn.f64", [](double a) { return 1 / a; });
  expect_computes<float, float, float, float>("fma.rn.f32",
                                              [](float a, float b, float c) { return std::fma(a, b, c); });
  expect_computes<float, float>("neg.f32", [](float a) { return -a; });
  expect_computes<float, float, float>(
      "max.f32", [](float a, float b) { return a == b ? (std::signbit(a) ? b : a) : std::fmax(a, b); });
}

// 1 + 2^-24 lies in the middle between two floats; rounding toward zero and up differ.
TEST(PtxArithmetic, RoundsByModifier) {
  const auto add = [](const std::string& mode) {
    Lab lab;
    float* const result = lab.make<float>(1);
    const auto fault =
        lab.run(kernel_text(".param .u64 out", "ld.param.u64 %d1, [out];\nmov.f32 %f1, 0f3F800000;\nadd." + mode +
                                                   ".f32 %f2, %f1, 0f33800000;\nst.global.f32 [%d1], %f2;"),
                {}, {}, result);
    EXPECT_FALSE(fault);
    return *result;
  };
  EXPECT_EQ(add("rn"), 1.0F);
  EXPECT_EQ(add("rz"), 1.0F);
  EXPECT_EQ(add("rm"), 1.0F);
  EXPECT_EQ(add("rp"), std::nextafter(1.0F, 2.0F));
}

TEST(PtxArithmetic, MakesCanonicalNaN) {
  Lab lab;
  U32* const result = lab.make<U32>(1);
  const auto fault =
      lab.run(kernel_text(".param .u64 out",
                          "ld.param.u64 %d1, [out];\nmov.f32 %f1, 0fFF800000;\nadd.rn.f32 %f2, %f1, 0f7F800000;\n"
                          "st.global.f32 [%d1], %f2;"),
              {}, {}, result);
  ASSERT_FALSE(fault);
  EXPECT_EQ(*result, 0x7fffffffU);
}

template <typename R, typename A>
R saturated(A a) {
  if (a != a) return sizeof(A) == 8 || sizeof(R) == 8 ? static_cast<R>(std::uint64_t{1} << (8 * sizeof(R) - 1)) : R{0};
  const double whole = std::trunc(static_cast<double>(a));
  if (whole >= std::ldexp(1.0, std::numeric_limits<R>::digits)) return std::numeric_limits<R>::max();
  return whole < static_cast<double>(std::numeric_limits<R>::min()) ? std::numeric_limits<R>::min()
                                                                    : static_cast<R>(whole);
}

TEST(PtxArithmetic, Converts) {
  expect_computes<U64, U32>("cvt.s64.s32", [](U32 a) { return static_cast<U64>(S64{static_cast<S32>(a)}); });
  expect_computes<U16, U64>("cvt.u16.u64", [](U64 a) { return static_cast<U16>(a); });
  expect_computes<U16, U16>("cvt.s16.s8", [](U16 a) { return static_cast<S16>(static_cast<std::int8_t>(a)); });
  expect_computes<float, U32>("cvt.rn.f32.u32", [](U32 a) { return static_cast<float>(a); });
  expect_computes<double, U64>("cvt.rn.f64.s64", [](U64 a) { return static_cast<double>(static_cast<S64>(a)); });
  expect_computes<U32, float>("cvt.rzi.u32.f32", [](float a) { return saturated<U32>(a); });
  expect_computes<U64, double>("cvt.rzi.s64.f64", [](double a) { return static_cast<U64>(saturated<S64>(a)); });
  expect_computes<U16, float>("cvt.rzi.s16.f32", [](float a) { return static_cast<U16>(saturated<S16>(a)); });
  expect_computes<double, float>("cvt.f64.f32", [](float a) { return static_cast<double>(a); });
  expect_computes<float, double>("cvt.rn.f32.f64", [](double a) { return static_cast<float>(a); });
  expect_computes<float, float>("cvt.rni.f32.f32", [](float a) { return std::nearbyint(a); });
}

// All 65536 values return to themselves, and values between two halves round to the nearest, or to the even one.
TEST(PtxArithmetic, ConvertsHalves) {
  Lab lab;
  constexpr U32 kCount = 65536;
  U16* const in = lab.make<U16>(kCount);
  float* const wide = lab.make<float>(kCount);
  U16* const out = lab.make<U16>(kCount);
  for (U32 i = 0; i < kCount; ++i) in[i] = static_cast<U16>(i);
  const auto fault =
      lab.run(kernel_text(".param .u64 in, .param .u64 wide, .param .u64 out",
                          "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [wide];\nld.param.u64 %d3, [out];\n"
                          "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\nmad.lo.s32 %r3, %r1, 512, %r2;\n"
                          "mad.wide.u32 %d4, %r3, 2, %d1;\nld.global.u16 %h1, [%d4];\ncvt.f32.f16 %f1, %h1;\n"
                          "mad.wide.u32 %d5, %r3, 4, %d2;\nst.global.f32 [%d5], %f1;\ncvt.rn.f16.f32 %h2, %f1;\n"
                          "mad.wide.u32 %d6, %r3, 2, %d3;\nst.global.u16 [%d6], %h2;"),
              {kCount / 512, 1, 1}, {512, 1, 1}, in, wide, out);
  ASSERT_FALSE(fault) << fault->text;
  EXPECT_EQ(wide[0x3c00], 1.0F);
  EXPECT_EQ(wide[0x0001], std::ldexp(1.0F, -24));
  EXPECT_EQ(wide[0xfbff], -65504.0F);
  for (U32 i = 0; i < kCount; ++i) {
    const bool is_nan = (i & 0x7c00) == 0x7c00 && (i & 0x3ff) != 0;
    ASSERT_EQ(out[i], is_nan ? 0x7fff : i);
  }
  expect_computes<U16, float>("cvt.rn.bf16.f32", [](float a) {
    if (a != a) return U32{0x7fff};
    const auto bits = std::bit_cast<U32>(a);
    const U32 rest = bits & 0xffff, odd = bits >> 16 & 1;
    return (bits >> 16) + (rest > 0x8000 || (rest == 0x8000 && odd) ? 1 : 0);
  });
}

struct HalfFormat {
  std::string name;
  int fraction_bits;
  int bias;
};
const HalfFormat kHalfFormats[] = {{"f16", 10, 15}, {"bf16", 7, 127}};

long double value_of(const HalfFormat& format, U16 bits) {
  const int fraction = bits & ((1 << format.fraction_bits) - 1), exponent = (bits & 0x7fff) >> format.fraction_bits;
  const int scale = -format.fraction_bits - format.bias;
  if (exponent == 2 * format.bias + 1)
    return fraction != 0 ? std::nanl("") : (bits & 0x8000) != 0 ? -HUGE_VALL : HUGE_VALL;
  const long double magnitude = exponent == 0
                                    ? std::ldexp(static_cast<long double>(fraction), 1 + scale)
                                    : std::ldexp(fraction + std::ldexp(1.0L, format.fraction_bits), exponent + scale);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// Searches the nearest value, or the even one of two. The value after the largest one, 2 to the power bias + 1, is
// infinity.
U16 nearest_half(const HalfFormat& format, long double exact) {
  if (exact != exact) return 0x7fff;
  const U32 infinity = (2U * static_cast<U32>(format.bias) + 1) << format.fraction_bits;
  const auto value = [&](U32 bits) {
    return bits == infinity ? std::ldexp(1.0L, format.bias + 1) : value_of(format, static_cast<U16>(bits));
  };
  const long double magnitude = std::fabs(exact);
  U32 low = 0, high = infinity;  // value(low) <= magnitude
  while (high - low > 1) {
    const U32 middle = (low + high) / 2;
    (value(middle) <= magnitude ? low : high) = middle;
  }
  const long double below = magnitude - value(low), above = value(high) - magnitude;
  const U32 chosen = below < above || (below == above && low % 2 == 0) ? low : high;
  return static_cast<U16>(chosen | (std::signbit(exact) ? 0x8000U : 0U));
}

TEST(PtxArithmetic, ComputesHalves_WithOneRounding) {
  for (const HalfFormat& format : kHalfFormats) {
    const auto value = [&](U16 bits) { return value_of(format, bits); };
    const auto nearest = [&](long double exact) { return nearest_half(format, exact); };
    const auto sum = [&](U16 a, U16 b) { return nearest(value(a) + value(b)); };
    expect_computes<U16, U16, U16>("add.rn." + format.name, sum);
    expect_computes<U16, U16, U16>("sub." + format.name, [&](U16 a, U16 b) { return nearest(value(a) - value(b)); });
    expect_computes<U16, U16, U16>("mul." + format.name, [&](U16 a, U16 b) { return nearest(value(a) * value(b)); });
    expect_computes<U16, U16, U16, U16>("fma.rn." + format.name,
                                        [&](U16 a, U16 b, U16 c) { return nearest(value(a) * value(b) + value(c)); });
    expect_computes<U16, U16, U16>("max.NaN." + format.name, [&](U16 a, U16 b) {
      const long double x = value(a), y = value(b);
      return x != x || y != y ? U16{0x7fff} : x > y || (x == y && !std::signbit(x)) ? a : b;
    });
    expect_computes<U32, U32, U32>("add." + format.name + "x2", [&](U32 a, U32 b) {
      const auto high = [](U32 pair) { return static_cast<U16>(pair >> 16); };
      return U32{sum(high(a), high(b))} << 16 | sum(static_cast<U16>(a), static_cast<U16>(b));
    });
    expect_computes<U16, U64>("cvt.rn." + format.name + ".s64",
                              [&](U64 a) { return nearest(static_cast<long double>(static_cast<S64>(a))); });
    expect_computes<U16, double>("cvt.rn." + format.name + ".f64",
                                 [&](double a) { return nearest(static_cast<long double>(a)); });
    expect_computes<U32, U16>("cvt.rzi.s32." + format.name,
                              [&](U16 a) { return static_cast<U32>(saturated<S32>(static_cast<float>(value(a)))); });
  }
}

// (1 + 2^-7) * 1.5 lies between two values. A little less is nearer to the lower one, although no double shows that.
TEST(PtxArithmetic, FusesHalvesWithOneRounding) {
  Lab lab;
  U16* const result = lab.make<U16>(1);
  const auto fault = lab.run(kernel_text(".param .u64 out",
                                         "ld.param.u64 %d1, [out];\nmov.b16 %h1, 0x3f81;\nmov.b16 %h2, 0x3fc0;\n"
                                         "mov.b16 %h3, 0x8001;\nfma.rn.bf16 %h4, %h1, %h2, %h3;\n"
                                         "st.global.b16 [%d1], %h4;"),
                             {}, {}, result);
  ASSERT_FALSE(fault) << fault->text;
  EXPECT_EQ(*result, 0x3fc1);
}

}  // namespace
}  // namespace tutti::ptx
