#include "src/wire/format.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti {
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

}  // namespace
}  // namespace tutti
