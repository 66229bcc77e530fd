#include "src/compression/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace tutti::test {
namespace {

TEST(CompressionFormat, IsFoundByName) {
  for (std::uint32_t f = 0; f < kCompressionFormats; ++f) {
    const auto format = static_cast<CompressionFormat>(f);
    ASSERT_NE(name(format), nullptr);
    const auto found = parse_compression(name(format));
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found.value(), format);
  }
  EXPECT_EQ(name(static_cast<CompressionFormat>(kCompressionFormats)), nullptr);
}

TEST(CompressionFormat, SuggestsOrListsFormats_WhenNameIsUnknown) {
  const Status similar = parse_compression("int5").status();
  EXPECT_EQ(similar.code(), Code::invalid_argument);
  EXPECT_NE(similar.message().find("'int5': did you mean int8?"), std::string::npos) << similar.message();
  const Status other = parse_compression("zstd").status();
  EXPECT_NE(other.message().find("raw, fp16, bf16, fp8_e4m3, fp8_e5m2, mxfp8, int8, int8_b32, int6, int4"),
            std::string::npos)
      << other.message();
}

TEST(CompressionFormat, HasDocumentedBytes) {
  constexpr std::uint32_t bytes[kCompressionFormats] = {0, 256, 256, 130, 130, 132, 130, 136, 104, 72};
  for (std::uint32_t f = 0; f < kCompressionFormats; ++f)
    EXPECT_EQ(compressed_bytes(static_cast<CompressionFormat>(f)), bytes[f]);
}

TEST(CompressionFormat, MatchesMemoryOf16BitTypes) {
  EXPECT_EQ(memory_format(DataType::float16), CompressionFormat::fp16);
  EXPECT_EQ(memory_format(DataType::bfloat16), CompressionFormat::bf16);
  EXPECT_EQ(memory_format(DataType::float32), CompressionFormat::none);
}

TEST(CompressionFormat, HasErrorOfSum_ByNumberOfRoundings) {
  EXPECT_EQ(compression_error_after(CompressionFormat::none, 8), 0);
  for (std::uint32_t f = 1; f < kCompressionFormats; ++f) {
    const auto format = static_cast<CompressionFormat>(f);
    SCOPED_TRACE(name(format));
    EXPECT_EQ(compression_error_after(format, 0), 0);
    for (const double few : {0.5, 1.0, 2.0}) {
      EXPECT_GE(compression_error_after(format, few), compression_error(format) * std::sqrt(few));
      EXPECT_LT(compression_error_after(format, few), compression_error(format) * std::sqrt(few) * 1.05);
    }
    for (double roundings = 0.5; roundings < 1000; roundings *= 1.1)
      EXPECT_LT(compression_error_after(format, roundings), compression_error_after(format, 1.1 * roundings));
  }
}

// Simulates a ring of n ranks, rounding by rounding. The sum of k terms has their variance plus the errors so far, and
// a rounding adds its share of both.
TEST(CompressionFormat, CountsRoundingOfErrors) {
  for (const CompressionFormat format : {CompressionFormat::int8, CompressionFormat::int6, CompressionFormat::int4}) {
    const double part = compression_error(format) * compression_error(format);
    for (const int ranks : {8, 64, 256}) {
      double errors = 0;
      for (int terms = 1; terms <= ranks; ++terms) errors += part * (terms + errors);
      const double expected = std::sqrt(errors / ranks);
      EXPECT_NEAR(compression_error_after(format, (ranks + 1) / 2.0) / expected, 1, 0.02)
          << name(format) << " " << ranks;
    }
  }
}

}  // namespace
}  // namespace tutti::test
