// Each instruction against the same computation on the host.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "tests/ptx/instruction.h"

namespace tutti::ptx {
namespace {

constexpr std::uint32_t kThreads = 128;

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

// Checks `opcode` %result, %operands... for random values.
template <typename R, typename... A, typename F>
void expect_computes(const std::string& opcode, F expected) {
  std::mt19937_64 random(std::hash<std::string>()(opcode));
  std::tuple<std::vector<A>...> inputs;
  for (std::uint32_t i = 0; i < kThreads; ++i)
    std::apply([&](auto&... in) { (in.push_back(random_value<A>(random)), ...); }, inputs);
  const std::vector<R> results =
      std::apply([&](auto&... in) { return results_of<R>(instruction<R, A...>(opcode), in...); }, inputs);
  ASSERT_EQ(results.size(), kThreads) << opcode;
  for (std::uint32_t n = 0; n < kThreads; ++n) {
    const R wanted = std::apply([&](auto&... in) { return static_cast<R>(expected(in[n]...)); }, inputs);
    ASSERT_TRUE(same(results[n], wanted))
        << opcode << " of thread " << n << ": " << +results[n] << " instead of " << +wanted;
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

}  // namespace
}  // namespace tutti::ptx
