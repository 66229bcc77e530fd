#include "tools/tutti/quantities.h"

#include <gtest/gtest.h>

#include <utility>

namespace tutti::tool {
namespace {

TEST(Quantities, ParseParameters) {
  const std::pair<const char*, double> counts[] = {{"1", 1}, {"25M", 25e6}, {"1.5K", 1500}, {"7B", 7e9}, {"1T", 1e12}};
  for (const auto& [text, count] : counts) EXPECT_EQ(parse_parameters(text).value(), count) << text;
  for (const char* text : {"", "0", "0.5", "-1", "M", "1.2.3M", "25m", "25G", "1e6", "11T", "25M ", "nan"})
    EXPECT_FALSE(parse_parameters(text).ok()) << text;
}

TEST(Quantities, ParseLinkRates) {
  const std::pair<const char*, double> rates[] = {
      {"10Gbit", 10}, {"10gbit/s", 10}, {"2.5Gbit", 2.5}, {"500Mbit", 0.5}, {"1.6TBIT", 1600}};
  for (const auto& [text, gbits_per_s] : rates) EXPECT_EQ(parse_link_rate(text).value(), gbits_per_s) << text;
  for (const char* text : {"10", "10G", "10GB", "0Gbit", "Gbit", "-1Gbit", "10Gbit/", "1001Tbit", "/s"})
    EXPECT_FALSE(parse_link_rate(text).ok()) << text;
}

TEST(Quantities, ParseDurations) {
  const std::pair<const char*, double> durations[] = {{"300ms", 3e5}, {"1.2s", 1.2e6}, {"8us", 8}};
  for (const auto& [text, us] : durations) EXPECT_EQ(parse_duration(text).value(), us) << text;
  for (const char* text : {"300", "0ms", "0.5us", "5min", "2000000s", "ms"})
    EXPECT_FALSE(parse_duration(text).ok()) << text;
}

TEST(Quantities, ParsePercentages) {
  EXPECT_EQ(parse_percent("0%").value(), 0);
  EXPECT_EQ(parse_percent("50%").value(), 0.5);
  EXPECT_EQ(parse_percent("100%").value(), 1);
  for (const char* text : {"0.5", "101%", "-1%", "%"}) EXPECT_FALSE(parse_percent(text).ok()) << text;
}

TEST(Quantities, ArePrintedWithThreeDigitsAndUnit) {
  EXPECT_EQ(duration_text(0), "0 us");
  EXPECT_EQ(duration_text(120'023), "120 ms");
  EXPECT_EQ(duration_text(999'400), "999 ms");
  EXPECT_EQ(duration_text(999'600), "1 s");  // Not 1e+03 ms.
  EXPECT_EQ(duration_text(7.2e9), "7200 s");
  EXPECT_EQ(bytes_text(1.5e8), "150 MB");
  EXPECT_EQ(bytes_text(6e16), "60000 TB");
}

}  // namespace
}  // namespace tutti::tool
