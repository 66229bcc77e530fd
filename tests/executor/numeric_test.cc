// Small floats against a reference that is based only on the meaning of their fields.
#include "src/base/factor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "src/executor/numeric_reduce.h"

namespace tutti::test {
namespace {

template <typename T>
struct SmallFloat : testing::Test {
  using Bits = decltype(T::bits);
  static constexpr std::uint32_t kCodes = 1u << (8 * sizeof(T));
  static constexpr std::uint32_t kSign = kCodes / 2;
  static constexpr int kMantissa = Format<T>::mantissa_bits;
  static constexpr int kBias = (1 << (Format<T>::exponent_bits - 1)) - 1;
  static constexpr bool kSaturates = sizeof(T) == 1;
  static constexpr bool kHasInfinity = !std::is_same_v<T, Float8E4M3>;

  static T element(std::uint32_t code) { return {static_cast<Bits>(code)}; }

  // The value of a code, by definition.
  static double meaning(std::uint32_t code) {
    const double sign = code >= kSign ? -1 : 1;
    const std::uint32_t magnitude = code % kSign;
    const auto exponent = static_cast<int>(magnitude >> kMantissa);
    const std::uint32_t mantissa = magnitude & ((1u << kMantissa) - 1);
    const bool last = exponent == (1 << Format<T>::exponent_bits) - 1;
    if (kHasInfinity && last) return mantissa == 0 ? sign * INFINITY : NAN;
    if (!kHasInfinity && last && mantissa == (1u << kMantissa) - 1) return NAN;
    const double digits = mantissa + (exponent == 0 ? 0 : 1 << kMantissa);
    return sign * std::ldexp(digits, std::max(exponent, 1) - kBias - kMantissa);
  }

  // The nearest code by search among all positive ones; the even one if two are equally near.
  static std::uint32_t nearest(double value) {
    if (std::isnan(value)) return static_cast<std::uint32_t>(Format<T>::nan);
    const std::uint32_t sign = std::signbit(value) ? kSign : 0;
    value = std::fabs(value);
    std::uint32_t low = 0;  // The largest finite code that is not above.
    for (std::uint32_t bit = kSign / 2; bit != 0; bit /= 2) {
      if (std::isfinite(meaning(low + bit)) && meaning(low + bit) <= value) low += bit;
    }
    if (std::isfinite(meaning(low + 1))) {
      const double below = value - meaning(low);
      const double above = meaning(low + 1) - value;
      return sign | (below < above || (below == above && low % 2 == 0) ? low : low + 1);
    }
    // Infinity begins half a step beyond the largest code.
    const double half = (meaning(low) - meaning(low - 1)) / 2;
    return sign | (!kSaturates && value >= meaning(low) + half ? low + 1 : low);
  }

  static void expect_nearest(float value) {
    EXPECT_EQ(std::uint32_t{from_float<T>(value).bits}, nearest(value)) << std::hexfloat << value;
  }
};

using CompressedTypes = testing::Types<Float16, BFloat16, Float8E4M3, Float8E5M2>;
TYPED_TEST_SUITE(SmallFloat, CompressedTypes);

TYPED_TEST(SmallFloat, WidensEveryCodeToItsValue) {
  for (std::uint32_t code = 0; code < this->kCodes; ++code) {
    const double meaning = this->meaning(code);
    const float widened = to_float(this->element(code));
    if (std::isnan(meaning)) {
      ASSERT_TRUE(std::isnan(widened)) << code;
    } else {
      ASSERT_EQ(widened, meaning) << code;
      ASSERT_EQ(std::signbit(widened), std::signbit(meaning)) << code;
    }
  }
}

TYPED_TEST(SmallFloat, KeepsEveryFiniteCode) {
  for (std::uint32_t code = 0; code < this->kCodes; ++code) {
    const float widened = to_float(this->element(code));
    if (!std::isfinite(widened)) continue;
    ASSERT_EQ(std::uint32_t{from_float<TypeParam>(widened).bits}, code);
  }
}

TYPED_TEST(SmallFloat, RoundsTiesToEven_AndOtherValuesToNearest) {
  for (std::uint32_t code = 0; code + 1 < this->kSign; ++code) {
    const double tie = (this->meaning(code) + this->meaning(code + 1)) / 2;
    if (!std::isfinite(tie)) continue;
    const auto middle = static_cast<float>(tie);
    ASSERT_EQ(middle, tie);
    for (const float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY)}) {
      this->expect_nearest(value);
      this->expect_nearest(-value);
    }
  }
}

TYPED_TEST(SmallFloat, OverflowsByItsFormat) {
  constexpr float largest = std::numeric_limits<float>::max();
  const std::uint32_t overflow = this->kSaturates ? this->nearest(largest) : this->nearest(INFINITY);
  EXPECT_EQ(overflow, static_cast<std::uint32_t>(Format<TypeParam>::overflow));
  EXPECT_EQ(std::uint32_t{from_float<TypeParam>(INFINITY).bits}, overflow);
  EXPECT_EQ(std::uint32_t{from_float<TypeParam>(-INFINITY).bits}, overflow | this->kSign);
  this->expect_nearest(largest);
}

TYPED_TEST(SmallFloat, HasOneNan) {
  for (const std::uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu, 0x7fffffffu}) {
    EXPECT_EQ(from_float<TypeParam>(std::bit_cast<float>(bits)).bits, Format<TypeParam>::nan);
  }
}

TYPED_TEST(SmallFloat, RoundsAnyFloatToNearest) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 300'000; ++i) this->expect_nearest(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
}

TEST(Factor, IsReadInEveryType) {
  const auto scale = [](DataType type, const auto& element) { return factor_of(type, &element).scale; };
  EXPECT_EQ(scale(DataType::float16, std::uint16_t{0xc100}), -2.5);
  EXPECT_EQ(scale(DataType::bfloat16, std::uint16_t{0x4020}), 2.5);
  EXPECT_EQ(scale(DataType::float8_e4m3, std::uint8_t{0xc4}), -3);
  EXPECT_EQ(scale(DataType::float8_e5m2, std::uint8_t{0x41}), 2.5);
  EXPECT_EQ(scale(DataType::float32, -0.75F), -0.75);
  EXPECT_EQ(scale(DataType::float64, 1e300), 1e300);
  EXPECT_EQ(scale(DataType::complex64, Complex<float>{-0.75F, 3}), -0.75);
  const Complex<double> product = {1e300, -2.5};
  EXPECT_EQ(factor_of(DataType::complex128, &product).imaginary_scale, -2.5);
  const auto low_bits = [](DataType type, const auto& element) {
    return static_cast<std::uint64_t>(factor_of(type, &element).integer_scale) << (64 - 8 * sizeof element);
  };
  EXPECT_EQ(low_bits(DataType::int8, std::int8_t{-3}), std::uint64_t{0xfd} << 56);
  EXPECT_EQ(low_bits(DataType::uint8, std::uint8_t{253}), std::uint64_t{0xfd} << 56);
  EXPECT_EQ(low_bits(DataType::int16, std::int16_t{-3}), std::uint64_t{0xfffd} << 48);
  EXPECT_EQ(low_bits(DataType::uint16, std::uint16_t{7}), std::uint64_t{7} << 48);
  EXPECT_EQ(low_bits(DataType::int32, -3), std::uint64_t{0xfffffffd} << 32);
  EXPECT_EQ(low_bits(DataType::uint32, 7U), std::uint64_t{7} << 32);
  EXPECT_EQ(low_bits(DataType::int64, std::int64_t{-3}), ~std::uint64_t{2});
  EXPECT_EQ(low_bits(DataType::uint64, ~std::uint64_t{2}), ~std::uint64_t{2});
}

TEST(Average, TruncatesIntegers_ForEveryByteAndDivisor) {
  using Bytes = Sums<std::int8_t, Reduction::avg, Scalar>;
  for (int sum = -128; sum < 128; ++sum) {
    for (const std::uint32_t divisor : {1u, 2u, 3u, 7u, 127u, 128u, 129u, 1000u, 0xffffffffu}) {
      const auto quotient = static_cast<std::int8_t>(Bytes::divide(static_cast<std::uint8_t>(sum), divisor));
      ASSERT_EQ(quotient, sum / static_cast<std::int64_t>(divisor)) << sum << " / " << divisor;
    }
  }
}

template <typename T>
struct AverageOfIntegers : testing::Test {};
using Integers = testing::Types<std::int16_t, std::uint16_t, std::int32_t, std::uint32_t>;
TYPED_TEST_SUITE(AverageOfIntegers, Integers);

// Rounding errors would appear next to multiples of the divisor.
TYPED_TEST(AverageOfIntegers, TruncatesAroundMultiples) {
  using Average = Sums<TypeParam, Reduction::avg, Scalar>;
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200'000; ++i) {
    const auto divisor = static_cast<std::uint32_t>(random() >> (32 + random() % 32)) | 1u;
    const auto multiple = static_cast<std::int64_t>(static_cast<TypeParam>(random())) / divisor * divisor;
    for (int away = -1; away <= 1; ++away) {
      const auto sum = static_cast<TypeParam>(multiple + away);
      const auto quotient = static_cast<TypeParam>(Average::divide(static_cast<Bits<TypeParam>>(sum), divisor));
      ASSERT_EQ(std::int64_t{quotient}, std::int64_t{sum} / divisor) << std::int64_t{sum} << " / " << divisor;
    }
  }
}

template <Reduction kReduction>
std::uint32_t chosen(std::uint32_t a, std::uint32_t b) {
  using Floats = Orders<float, kReduction, Scalar>;
  return Floats::write(Floats::combine(Floats::read(a), Floats::read(b)));
}

TEST(MinMax, DoNotDependOnOrder) {
  constexpr std::uint32_t nan = 0x7fc00000;
  const std::vector<std::uint32_t> rising = {0xff800000, 0xc0000000, 0x80000001, 0x80000000,
                                             0x00000000, 0x00000001, 0x3f800000, 0x7f800000};
  for (std::size_t a = 0; a < rising.size(); ++a) {
    for (std::size_t b = 0; b < rising.size(); ++b) {
      EXPECT_EQ(chosen<Reduction::min>(rising[a], rising[b]), rising[std::min(a, b)]);
      EXPECT_EQ(chosen<Reduction::max>(rising[a], rising[b]), rising[std::max(a, b)]);
    }
    for (const std::uint32_t other : {0x7fc00001u, 0xffc00000u, 0x7f800001u, 0xffffffffu}) {
      EXPECT_EQ(chosen<Reduction::min>(rising[a], other), nan);
      EXPECT_EQ(chosen<Reduction::min>(other, rising[a]), nan);
      EXPECT_EQ(chosen<Reduction::max>(rising[a], other), nan);
      EXPECT_EQ(chosen<Reduction::max>(other, rising[a]), nan);
    }
  }
}

TEST(TypeVisitor, VisitsEveryTypeWithItsSize) {
  for (std::uint32_t i = 0; i < kDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(visit(type, []<typename T>(Type<T>) { return sizeof(T); }), size_of(type)) << name(type);
  }
}

}  // namespace
}  // namespace tutti::test
