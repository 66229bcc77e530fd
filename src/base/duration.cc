#include "src/base/duration.h"

#include <algorithm>
#include <cstdio>

namespace tutti {
namespace {

// `count` small units, `in_large` of which make one large unit: "10 min", "2 h 5 min".
std::string in_two_units(std::int64_t count, std::int64_t in_large, const char* large, const char* small) {
  const std::int64_t rest = count % in_large;
  std::string text = std::to_string(count / in_large) + large;
  if (rest != 0) text += " " + std::to_string(rest) + small;
  return text;
}

std::int64_t rounded(std::int64_t value, std::int64_t unit) { return (value + unit / 2) / unit; }

}  // namespace

std::string describe_ms(std::int64_t milliseconds) {
  constexpr std::int64_t kSecondMs = 1000;
  constexpr std::int64_t kMinuteMs = 60 * kSecondMs;
  constexpr std::int64_t kHourMs = 60 * kMinuteMs;
  constexpr std::int64_t kDayMs = 24 * kHourMs;
  const std::int64_t ms = std::max<std::int64_t>(milliseconds, 0);
  if (ms < kSecondMs) return std::to_string(ms) + " ms";
  if (ms < 10 * kSecondMs) {
    const std::int64_t tenths = rounded(ms, kSecondMs / 10);
    std::string text = std::to_string(tenths / 10);
    if (tenths % 10 != 0) text += "." + std::to_string(tenths % 10);
    return text + " s";
  }
  const std::int64_t seconds = rounded(ms, kSecondMs);
  if (seconds < 120 && seconds != 60) return std::to_string(seconds) + " s";
  if (ms < kHourMs) return in_two_units(seconds, 60, " min", " s");
  if (ms < kDayMs) return in_two_units(rounded(ms, kMinuteMs), 60, " h", " min");
  return in_two_units(rounded(ms, kHourMs), 24, " d", " h");
}

std::string describe_us(double microseconds) {
  char text[64];
  std::snprintf(text, sizeof text, microseconds < 999.5 ? "%.3g us" : "%.0f us", microseconds);
  return text;
}

}  // namespace tutti
