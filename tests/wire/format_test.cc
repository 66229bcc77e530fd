#include "src/wire/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace tutti::test {
namespace {

TEST(WireFormat, IsFoundByItsName) {
  for (std::uint32_t f = 0; f < kWireFormats; ++f) {
    const auto format = static_cast<WireFormat>(f);
    ASSERT_NE(name(format), nullptr);
    const auto found = parse_wire(name(format));
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found.value(), format);
  }
  EXPECT_EQ(name(static_cast<WireFormat>(kWireFormats)), nullptr);
}

TEST(WireFormat, SaysWhatThereIsInPlaceOfAnUnknownName) {
  const Status status = parse_wire("int5").status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_NE(status.message().find("'int5'"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("raw, fp16, bf16, fp8_e4m3, fp8_e5m2, mxfp8, int8, int8_b32, int6, int4"),
            std::string::npos)
      << status.message();
}

TEST(WireFormat, HasTheBytesOfItsPage) {
  constexpr std::uint32_t bytes[kWireFormats] = {0, 256, 256, 130, 130, 132, 130, 136, 104, 72};
  for (std::uint32_t f = 0; f < kWireFormats; ++f) EXPECT_EQ(wire_bytes(static_cast<WireFormat>(f)), bytes[f]);
}

TEST(WireFormat, IsWhatMemoryOf16BitsHas) {
  EXPECT_EQ(memory_format(DataType::float16), WireFormat::fp16);
  EXPECT_EQ(memory_format(DataType::bfloat16), WireFormat::bf16);
  EXPECT_EQ(memory_format(DataType::float32), WireFormat::none);
}

TEST(WireFormat, HasTheErrorOfASumByTheNumberOfItsRoundings) {
  EXPECT_EQ(wire_error_after(WireFormat::none, 8), 0);
  for (std::uint32_t f = 1; f < kWireFormats; ++f) {
    const auto format = static_cast<WireFormat>(f);
    SCOPED_TRACE(name(format));
    EXPECT_EQ(wire_error_after(format, 0), 0);
    for (const double few : {0.5, 1.0, 2.0}) {
      EXPECT_GE(wire_error_after(format, few), wire_error(format) * std::sqrt(few));
      EXPECT_LT(wire_error_after(format, few), wire_error(format) * std::sqrt(few) * 1.05);
    }
    for (double roundings = 0.5; roundings < 1000; roundings *= 1.1)
      EXPECT_LT(wire_error_after(format, roundings), wire_error_after(format, 1.1 * roundings));
  }
}

// A ring of n ranks, rounding by rounding: the sum of k terms has their variance and the errors so far, and a rounding
// adds its part of both.
TEST(WireFormat, CountsThatErrorsAreRoundedToo) {
  for (const WireFormat format : {WireFormat::int8, WireFormat::int6, WireFormat::int4}) {
    const double part = wire_error(format) * wire_error(format);
    for (const int ranks : {8, 64, 256}) {
      double errors = 0;
      for (int terms = 1; terms <= ranks; ++terms) errors += part * (terms + errors);
      const double expected = std::sqrt(errors / ranks);
      EXPECT_NEAR(wire_error_after(format, (ranks + 1) / 2.0) / expected, 1, 0.02) << name(format) << " " << ranks;
    }
  }
}

}  // namespace
}  // namespace tutti::test
