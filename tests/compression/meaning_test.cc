// An independent implementation of docs/reference/compression-formats.md: bytes and values of every format.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/compression/cases.h"

namespace tutti::test {
namespace {

struct Page {
  CompressionFormat format;
  std::uint32_t block;
  std::uint32_t scale_bytes;
  std::uint32_t code_bits;
  double top;  // The largest code; 0 for formats without a scale.
};
constexpr Page kPages[] = {
    {CompressionFormat::fp16, 128, 0, 16, 0},      {CompressionFormat::bf16, 128, 0, 16, 0},
    {CompressionFormat::fp8_e4m3, 128, 2, 8, 448}, {CompressionFormat::fp8_e5m2, 128, 2, 8, 57344},
    {CompressionFormat::mxfp8, 32, 1, 8, 448},     {CompressionFormat::int8, 128, 2, 8, 127},
    {CompressionFormat::int8_b32, 32, 2, 8, 127},  {CompressionFormat::int6, 32, 2, 6, 31},
    {CompressionFormat::int4, 32, 2, 4, 7},
};

// A float with these bits of exponent and mantissa; NaN as its format has it.
double float_meaning(std::uint32_t code, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const int sign_at = exponent_bits + mantissa_bits;
  const double sign = (code >> sign_at & 1) != 0 ? -1 : 1;
  const int exponent = static_cast<int>(code >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const auto mantissa = static_cast<int>(code & ((1u << mantissa_bits) - 1));
  const int last = (1 << exponent_bits) - 1;
  if (has_infinity && exponent == last) return mantissa == 0 ? sign * INFINITY : NAN;
  if (!has_infinity && exponent == last && mantissa == (1 << mantissa_bits) - 1) return NAN;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  return sign * std::ldexp(whole, std::max(exponent, 1) - bias - mantissa_bits);
}

double code_meaning(const Page& page, std::uint32_t code) {
  switch (page.format) {
    case CompressionFormat::fp16: return float_meaning(code, 5, 10, true);
    case CompressionFormat::bf16: return float_meaning(code, 8, 7, true);
    case CompressionFormat::fp8_e4m3:
    case CompressionFormat::mxfp8: return float_meaning(code, 4, 3, false);
    case CompressionFormat::fp8_e5m2: return float_meaning(code, 5, 2, true);
    default: break;
  }
  const auto half = std::int32_t{1} << (page.code_bits - 1);
  const auto value = static_cast<std::int32_t>(code);
  return value < half ? value : value - 2 * half;
}

double scale_meaning(const Page& page, const std::byte* group, std::uint32_t block) {
  if (page.scale_bytes == 0) return 1;
  const std::byte* at = group + static_cast<std::size_t>(block) * page.scale_bytes;
  if (page.scale_bytes == 1) return at[0] == std::byte{255} ? NAN : std::ldexp(1.0, static_cast<int>(at[0]) - 127);
  return float_meaning(static_cast<std::uint32_t>(at[0]) | static_cast<std::uint32_t>(at[1]) << 8, 8, 7, true);
}

std::uint32_t code_at(const Page& page, const std::byte* group, std::uint32_t element) {
  const std::byte* codes = group + static_cast<std::size_t>(kCompressionGroup / page.block) * page.scale_bytes;
  std::uint32_t code = 0;
  for (std::uint32_t bit = 0; bit < page.code_bits; ++bit) {
    const std::uint32_t at = element * page.code_bits + bit;
    code |= (static_cast<std::uint32_t>(codes[at / 8]) >> at % 8 & 1) << bit;
  }
  return code;
}

TEST(CompressionMeaning, MatchesDocumentation) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  CaseValues source(seed);
  constexpr std::uint64_t kGroups = 4096;  // Large enough that each float of 16 bits occurs about eight times.
  for (const Page& page : kPages) {
    std::vector<std::byte> compression(kGroups * compressed_bytes(page.format));
    for (std::byte& byte : compression) byte = static_cast<std::byte>(source.word());
    const auto values = decoded(find_codec(page.format), compression, kGroups * kCompressionGroup);
    for (std::uint64_t i = 0; i < values.size(); ++i) {
      const std::byte* group = compression.data() + i / kCompressionGroup * compressed_bytes(page.format);
      const auto element = static_cast<std::uint32_t>(i % kCompressionGroup);
      const double scale = scale_meaning(page, group, element / page.block);
      const auto expected = static_cast<float>(code_meaning(page, code_at(page, group, element)) * scale);
      if (std::isnan(expected)) {
        ASSERT_EQ(bits_of(values[i]), 0x7fc00000u) << name(page.format);  // The format's only NaN.
      } else {
        ASSERT_EQ(values[i], expected) << name(page.format);
      }
    }
  }
}

// Covers every code of every format under a scale of 1, the values halfway between adjacent codes, and their
// neighbours.
TEST(CompressionMeaning, RoundsToNearestEven) {
  for (const Page& page : kPages) {
    std::vector<double> meanings;  // Values of the non-negative codes, in their order.
    for (std::uint32_t code = 0; code < 1u << (page.code_bits - 1); ++code) {
      const double meaning = code_meaning(page, code);
      if (!std::isfinite(meaning)) break;
      meanings.push_back(meaning);
    }
    const auto top = static_cast<float>(page.top);
    std::vector<float> values, expected;
    const auto expect = [&](double value, double nearest) {
      for (const float sign : {1.0f, -1.0f}) {
        if (values.size() % page.block == 0 && page.top != 0) {
          values.push_back(top);
          expected.push_back(top);
        }
        values.push_back(sign * static_cast<float>(value));
        expected.push_back(sign * static_cast<float>(nearest));
      }
    };
    for (std::size_t code = 0; code + 1 < meanings.size(); ++code) {
      const double low = meanings[code], high = meanings[code + 1];
      const auto half = static_cast<float>((low + high) / 2);
      if (static_cast<double>(half) != (low + high) / 2)
        continue;  // The smallest bfloat16 values: no float32 lies halfway.
      expect(low, low);
      expect(half, code % 2 == 0 ? low : high);
      expect(float_of(bits_of(half) - 1), low);
      expect(float_of(bits_of(half) + 1), high);
    }
    const Codec codec = find_codec(page.format);
    const auto got = decoded(codec, encoded(codec, page.format, values, DataType::float32), values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(got[i], expected[i]) << name(page.format) << " of " << std::hexfloat << values[i];
  }
}

float decoded_at(CompressionFormat format, const std::vector<float>& values, std::size_t i,
                 DataType type = DataType::float32) {
  const Codec codec = find_codec(format);
  return decoded(codec, encoded(codec, format, values, type), values.size())[i];
}

bool is_integer(const Page& page) { return page.top != 0 && page.top < 448; }

TEST(CompressionMeaning, MatchesDocumentation_OfNonFiniteValues) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const Page& page : kPages) {
    for (const float special : {infinity, -infinity, std::nanf("")}) {
      SCOPED_TRACE(std::string(name(page.format)) + " " + std::to_string(special));
      std::vector<float> values(kCompressionGroup, 0.5f);
      values[40] = special;
      const float there = decoded_at(page.format, values, 40);
      const bool keeps_infinity = page.top == 0 || page.format == CompressionFormat::fp8_e5m2;
      if (keeps_infinity && std::isinf(special)) {
        EXPECT_EQ(there, special);
      } else {
        EXPECT_TRUE(std::isnan(there));
      }
      const float beside = decoded_at(page.format, values, 41);
      const float elsewhere = decoded_at(page.format, values, 0);
      EXPECT_EQ(std::isnan(beside), is_integer(page));
      EXPECT_EQ(std::isnan(elsewhere), is_integer(page) && page.block == kCompressionGroup);
      if (!is_integer(page)) {
        EXPECT_NEAR(beside, 0.5, 0.02);  // The scale is that of the other elements.
      }
    }
  }
}

TEST(CompressionMeaning, IsInfinite_WhenTensorCannotHoldValue) {
  for (const Page& page : kPages) {
    std::vector<float> values(kCompressionGroup, 0.5f);
    for (const float beyond : {65505.0f, 70000.0f}) {
      values[40] = beyond;
      const bool rounds_down = page.format == CompressionFormat::fp16 && beyond < 65520;
      const float there = decoded_at(page.format, values, 40, DataType::float16);
      EXPECT_EQ(std::isfinite(there), rounds_down) << name(page.format) << " of " << beyond;
    }
    EXPECT_EQ(std::isfinite(decoded_at(page.format, values, 40)), page.format != CompressionFormat::fp16)
        << name(page.format);
    values[40] = 65504;
    EXPECT_NEAR(decoded_at(page.format, values, 40, DataType::float16), 65504, 65504 * 0.13) << name(page.format);
  }
}

TEST(CompressionMeaning, KeepsZeroAndSmallGradients) {
  for (const Page& page : kPages) {
    for (const float sign : {1.0f, -1.0f})
      EXPECT_EQ(decoded_at(page.format, std::vector<float>(kCompressionGroup, sign * 0.0f), 5), 0) << name(page.format);
    if (page.format == CompressionFormat::fp16) continue;
    for (const float small : {1e-9f, 1e-20f, 1e-30f})
      EXPECT_NEAR(decoded_at(page.format, std::vector<float>(kCompressionGroup, small), 5) / small, 1, 0.13)
          << name(page.format);
  }
}

// An outlier affects its own block only.
TEST(CompressionMeaning, HasScalePerBlock) {
  for (const Page& page : kPages) {
    if (page.block == kCompressionGroup) continue;
    std::vector<float> values(kCompressionGroup, 1.0f);
    values[70] = 1e30f;
    EXPECT_NEAR(decoded_at(page.format, values, 70) / 1e30f, 1, 0.5 / 7 + 0.2) << name(page.format);
    EXPECT_EQ(decoded_at(page.format, values, 71), 0) << name(page.format);
    EXPECT_NEAR(decoded_at(page.format, values, 63), 1, 0.01) << name(page.format);
    EXPECT_NEAR(decoded_at(page.format, values, 96), 1, 0.01) << name(page.format);
  }
}

double measured_error(CompressionFormat format, const std::vector<float>& values, const Dither* dither) {
  const Codec codec = find_codec(format);
  const auto back = decoded(codec, encoded(codec, format, values, DataType::float32, dither), values.size());
  double errors = 0, squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    errors += std::pow(static_cast<double>(back[i]) - values[i], 2);
    squares += std::pow(static_cast<double>(values[i]), 2);
  }
  return std::sqrt(errors / squares);
}

TEST(CompressionError, MatchesDocumentation) {
  CaseValues source(20);
  std::vector<float> values(std::size_t{1} << 20);
  for (float& value : values) value = source.normal();
  const Dither dither = {22, 0};
  for (const Page& page : kPages) {
    EXPECT_NEAR(measured_error(page.format, values, nullptr) / compression_error(page.format), 1, 0.02)
        << name(page.format);
    EXPECT_NEAR(measured_error(page.format, values, &dither) / compression_error(page.format, Rounding::stochastic), 1,
                0.02)
        << name(page.format);
  }
  EXPECT_EQ(compression_error(CompressionFormat::none), 0);
}

// The error is at most half a step if the largest magnitude has the code `top`, and one step more if that code was
// clipped.
TEST(CompressionError, IsHalfAStep_OfIntegers) {
  CaseValues source(21);
  for (const Page& page : kPages) {
    if (!is_integer(page)) continue;
    std::vector<float> values(kCompressionGroup * 2000);
    for (float& value : values) value = source.normal();
    const Codec codec = find_codec(page.format);
    const auto back = decoded(codec, encoded(codec, page.format, values, DataType::float32), values.size());
    for (std::size_t block = 0; block < values.size(); block += page.block) {
      float largest = 0;
      for (std::size_t i = block; i < block + page.block; ++i) largest = std::max(largest, std::abs(values[i]));
      for (std::size_t i = block; i < block + page.block; ++i) {
        const double step = largest / page.top * (1 + 0x1p-7);
        const double bound = std::abs(back[i]) > largest * (1 - 1 / page.top) ? step : step / 2;
        ASSERT_LE(std::abs(static_cast<double>(back[i]) - values[i]), bound) << name(page.format);
      }
    }
  }
}

}  // namespace
}  // namespace tutti::test
