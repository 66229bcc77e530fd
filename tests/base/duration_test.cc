#include "src/base/duration.h"

#include <gtest/gtest.h>

namespace tutti::test {
namespace {

TEST(Duration, ChoosesReadableUnit) {
  EXPECT_EQ(describe_ms(0), "0 ms");
  EXPECT_EQ(describe_ms(999), "999 ms");
  EXPECT_EQ(describe_ms(1002), "1 s");
  EXPECT_EQ(describe_ms(1500), "1.5 s");
  EXPECT_EQ(describe_ms(9'960), "10 s");
  EXPECT_EQ(describe_ms(30'012), "30 s");
  EXPECT_EQ(describe_ms(60'000), "1 min");
  EXPECT_EQ(describe_ms(90'000), "90 s");
  EXPECT_EQ(describe_ms(120'000), "2 min");
  EXPECT_EQ(describe_ms(150'000), "2 min 30 s");
  EXPECT_EQ(describe_ms(600'000), "10 min");
  EXPECT_EQ(describe_ms(5'400'000), "1 h 30 min");
  EXPECT_EQ(describe_ms(172'800'000), "2 d");
}

TEST(Duration, RoundsIntoNextUnit_WhenJustBelowIt) {
  EXPECT_EQ(describe_ms(3'599'900), "60 min");
  EXPECT_EQ(describe_ms(86'399'999), "24 h");
}

TEST(Duration, HasNoExponent_InMicroseconds) {
  EXPECT_EQ(describe_us(0.1234), "0.123 us");
  EXPECT_EQ(describe_us(12.34), "12.3 us");
  EXPECT_EQ(describe_us(999.4), "999 us");
  EXPECT_EQ(describe_us(999.6), "1000 us");
  EXPECT_EQ(describe_us(1'234'567), "1234567 us");
}

TEST(Duration, IsZero_WhenNegative) { EXPECT_EQ(describe_ms(-5), "0 ms"); }

}  // namespace
}  // namespace tutti::test
