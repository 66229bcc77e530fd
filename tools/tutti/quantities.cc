#include "tools/tutti/quantities.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>

#include "src/base/read_number.h"

namespace tutti::tool {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kCounts[] = {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"T", 1e12}};
constexpr Unit kRates[] = {{"mbit", 1e-3}, {"gbit", 1}, {"tbit", 1e3}};  // In Gbit/s.
constexpr Unit kDurations[] = {{"us", 1}, {"ms", 1e3}, {"s", 1e6}};      // In microseconds.
constexpr Unit kSizes[] = {{"bytes", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};

struct Limits {
  double min, max;
};

// Returns the value in units of factor 1; empty if the text is not a number within the limits and one of the units.
std::optional<double> parse_in(std::span<const Unit> units, std::string_view text, Limits limits) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto unit =
      std::find_if(units.begin(), units.end(), [&](const Unit& each) { return each.name == text.substr(end); });
  double number = 0;
  if (unit == units.end() || !read_number(text.substr(0, end), number, std::chars_format::fixed)) return std::nullopt;
  const double value = number * unit->factor;
  return value >= limits.min && value <= limits.max ? std::optional(value) : std::nullopt;
}

std::string text_in(std::span<const Unit> units, double value) {
  constexpr double kRoundsUp = 999.5;  // Three digits of it are 1000.
  const Unit* unit = &units.front();
  while (unit != &units.back() && value / unit->factor >= kRoundsUp) ++unit;
  char text[64];
  std::snprintf(text, sizeof text, value / unit->factor < kRoundsUp ? "%.3g " : "%.0f ", value / unit->factor);
  return text + std::string(unit->name);
}

}  // namespace

Result<double> parse_parameters(std::string_view text) {
  const std::optional<double> count = parse_in(kCounts, text, {1, 1e13});
  if (count) return std::floor(*count);
  return invalid_argument(
      "must be a number of parameters from 1 to 1e13, such as 25M or 7B (K, M, B and T are powers of 1000)");
}

Result<double> parse_link_rate(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char letter) { return std::tolower(letter); });
  if (lower.ends_with("/s")) lower.resize(lower.size() - 2);
  const std::optional<double> rate = parse_in(kRates, lower, {1e-3, 1e6});
  if (rate) return *rate;
  return invalid_argument("must be a bandwidth from 1Mbit to 1000Tbit with its unit, such as 10Gbit");
}

Result<double> parse_duration(std::string_view text) {
  const std::optional<double> us = parse_in(kDurations, text, {1, 1e12});
  if (us) return *us;
  return invalid_argument("must be a time from 1us to 1000000s with its unit, such as 300ms");
}

Result<double> parse_percent(std::string_view text) {
  constexpr Unit kPercent[] = {{"%", 0.01}};
  const std::optional<double> part = parse_in(kPercent, text, {0, 1});
  if (part) return *part;
  return invalid_argument("must be from 0% to 100%, such as 50%");
}

std::string duration_text(double us) { return text_in(kDurations, us); }

std::string bytes_text(double bytes) { return text_in(kSizes, bytes); }

}  // namespace tutti::tool
