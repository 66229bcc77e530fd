#include "src/base/read_number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tutti::test {
namespace {

TEST(ReadNumber, ReadsWholeText) {
  std::uint16_t count = 0;
  EXPECT_TRUE(read_number("65535", count));
  EXPECT_EQ(count, 65535);
  EXPECT_TRUE(read_number("ff", count, 16));
  EXPECT_EQ(count, 255);
  double value = 0;
  EXPECT_TRUE(read_number("-1e3", value));
  EXPECT_EQ(value, -1000);
  EXPECT_FALSE(read_number("1e3", value, std::chars_format::fixed));
}

TEST(ReadNumber, KeepsNumber_WhenTextIsMoreThanOneNumber) {
  std::uint16_t count = 7;
  for (const char* text : {"", " 1", "1 ", "1,2", "0x1", "-1", "+1", "1.5", "65536", "one"})
    EXPECT_FALSE(read_number(text, count)) << text;
  EXPECT_EQ(count, 7);
}

}  // namespace
}  // namespace tutti::test
