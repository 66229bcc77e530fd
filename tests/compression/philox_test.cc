// The generator against its authors' vectors, and stochastic rounding with it.
#include "src/compression/philox.h"

#include <gtest/gtest.h>

#include "tests/compression/cases.h"

namespace tutti::test {
namespace {

void expect_block(PhiloxWords counter, std::uint64_t key, PhiloxWords expected) {
  const PhiloxWords block = philox(counter, key);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(block.words[i], expected.words[i]) << i;
}

// kat_vectors of Random123, philox4x32 with 10 rounds.
TEST(Philox, MatchesKnownAnswers) {
  expect_block({{0, 0, 0, 0}}, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  constexpr std::uint32_t kOnes = 0xffffffff;
  expect_block({{kOnes, kOnes, kOnes, kOnes}}, ~std::uint64_t{0}, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  expect_block({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822,
               {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

TEST(Dither, DependsOnElement_NotOnCutOfBuffer) {
  CaseValues values(1);
  std::vector<float> whole(5 * kCompressionGroup);
  for (float& value : whole) value = values.normal();
  for (const CompressionFormat format : compression_formats()) {
    const Codec codec = find_codec(format);
    const Dither dither = {7, 1000};
    const auto all = encoded(codec, format, whole, DataType::float32, &dither);
    const Dither later = {7, 1000 + 2 * kCompressionGroup};
    const std::vector<float> rest(whole.begin() + 2 * kCompressionGroup, whole.end());
    const auto part = encoded(codec, format, rest, DataType::float32, &later);
    EXPECT_EQ(std::vector<std::byte>(all.begin() + 2 * compressed_bytes(format), all.end()), part) << name(format);
    const Dither other = {8, 1000};
    EXPECT_NE(encoded(codec, format, whole, DataType::float32, &other), all) << name(format);
  }
}

TEST(Dither, KeepsRepresentableValues) {
  CaseValues values(2);
  std::vector<float> whole(20 * kCompressionGroup);
  for (float& value : whole) value = values.normal();
  for (const CompressionFormat format : compression_formats()) {
    const Codec codec = find_codec(format);
    const auto nearest = encoded(codec, format, whole, DataType::float32);
    const auto held = decoded(codec, nearest, whole.size());
    const Dither dither = {3, 0};
    EXPECT_EQ(encoded(codec, format, held, DataType::float32, &dither), nearest) << name(format);
  }
}

// The largest element of a block determines the same scale again, however the other elements were rounded.
TEST(Dither, GivesBytesThatReencodeToThemselves) {
  CaseValues values(6);
  for (const CompressionFormat format : compression_formats()) {
    const Codec codec = find_codec(format);
    for (const DataType type : kTensorTypes) {
      for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const std::vector<float> group = values.group(false);
        const Dither dither = {seed, 0};
        const auto random = encoded(codec, format, group, type, &dither);
        std::vector<float> held = decoded(codec, random, kCompressionGroup);
        for (float& value : held) value = stored_as(type, value);
        EXPECT_EQ(encoded(codec, format, held, type), random) << name(format) << " of " << name(type) << " " << seed;
      }
    }
  }
}

// Four values in each block, the first of which determines the scale. A value halfway between codes is rounded up as
// often as down, and the mean of many results equals the value.
TEST(Dither, IsUnbiased) {
  constexpr std::uint64_t kGroups = 4000;
  for (const CompressionFormat format : compression_formats()) {
    const Codec codec = find_codec(format);
    for (const float value : {0.7001f, -0.31f, 0.0123f}) {
      std::vector<float> values(kGroups * kCompressionGroup, value);
      for (std::uint64_t i = 0; i < values.size(); i += 32) values[i] = 1;
      const Dither dither = {11, 0};
      const auto back = decoded(codec, encoded(codec, format, values, DataType::float32, &dither), values.size());
      double sum = 0, squares = 0;
      std::uint64_t count = 0;
      for (std::uint64_t i = 0; i < back.size(); ++i) {
        if (i % 32 == 0) continue;
        const double error = static_cast<double>(back[i]) - value;
        sum += error;
        squares += error * error;
        ++count;
      }
      // Five times the deviation of the mean of independent errors.
      const auto n = static_cast<double>(count);
      EXPECT_LE(std::abs(sum / n), 5 * std::sqrt(squares / n / n)) << name(format) << " " << value;
      EXPECT_GT(squares, 0) << name(format) << " " << value;
    }
  }
}

TEST(Dither, KeepsNonFiniteValues) {
  for (const CompressionFormat format : compression_formats()) {
    for (const DataType type : kTensorTypes) {
      const Codec codec = find_codec(format);
      CaseValues values(5);
      for (int i = 0; i < 200; ++i) {
        const std::vector<float> group = values.group(true);
        const Dither dither = {1, 0};
        const auto nearest = decoded(codec, encoded(codec, format, group, type), kCompressionGroup);
        const auto random = decoded(codec, encoded(codec, format, group, type, &dither), kCompressionGroup);
        for (std::uint32_t k = 0; k < kCompressionGroup; ++k) {
          if (std::isfinite(nearest[k]) && std::abs(group[k]) < 65000) {
            EXPECT_TRUE(std::isfinite(random[k])) << name(format) << " " << group[k];
          }
          EXPECT_EQ(std::isnan(nearest[k]), std::isnan(random[k])) << name(format) << " " << group[k];
        }
      }
    }
  }
}

}  // namespace
}  // namespace tutti::test
