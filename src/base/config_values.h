// Values of variables, out of text: each says whether the text is one.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "src/base/config.h"
#include "src/base/nccl_names.h"

namespace tutti {

template <typename Number>
bool parse(const std::string& text, Number& number) {
  Number parsed{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  number = parsed;
  return true;
}

inline bool parse(const std::string& text, std::string& kept) {
  kept = text;
  return true;
}

inline bool parse_time(const std::string& text, std::int64_t& milliseconds) {
  std::int64_t parsed = 0;
  if (!parse(text, parsed) || parsed < -1 || parsed > kLongestTimeoutMs) return false;
  milliseconds = std::max<std::int64_t>(parsed, 0);  // -1 is none in options, where 0 is the default.
  return true;
}

inline bool parse_switch(const std::string& text, bool& on) {
  if (text != "0" && text != "1") return false;
  on = text == "1";
  return true;
}

template <typename Number>
bool parse_within(const std::string& text, Number least, Number most, Number& number) {
  Number parsed{};
  if (!parse(text, parsed) || !(parsed >= least && parsed <= most)) return false;  // NaN neither.
  number = parsed;
  return true;
}

// NCCL's levels are ours, but for two that say almost nothing, and one that says more than we have.
inline bool parse_level(const std::string& text, LogLevel& level) {
  std::optional<LogLevel> parsed = log_level_of(text);
  if (text == "VERSION" || text == "ABORT") parsed = LogLevel::warn;
  if (!parsed) return false;
  level = *parsed;
  return true;
}

// NCCL's older numbers are taken as well.
inline bool parse_path(const std::string& text, Path& path) {
  constexpr std::array kNumbered = {Path::local,       Path::one_switch,  Path::switches,
                                    Path::host_bridge, Path::host_bridge, Path::system};
  std::uint32_t number = 0;
  if (parse(text, number)) {
    path = kNumbered[std::min<std::size_t>(number, kNumbered.size() - 1)];
    return true;
  }
  const std::optional<Path> named = path_of(text);
  if (named) path = *named;
  return named.has_value();
}

// Of NCCL's levels one means never; how far a network card is from a GPU is not known for the others. Its older numbers
// are not taken, but for 0: 1 would be read as "on".
inline bool parse_gpudirect(const std::string& text, GpuDirect& wanted) {
  constexpr std::pair<const char*, GpuDirect> kWords[] = {
      {"auto", GpuDirect::automatic}, {"off", GpuDirect::off}, {"on", GpuDirect::on}};
  for (const auto& [word, meant] : kWords) {
    if (text != word) continue;
    wanted = meant;
    return true;
  }
  const std::optional<Path> level = text == "0" ? Path::local : path_of(text);
  if (level) wanted = *level == Path::local ? GpuDirect::off : GpuDirect::automatic;
  return level.has_value();
}

inline bool parse_tune(const std::string& text, Tune& tune) {
  constexpr std::pair<const char*, Tune> kWords[] = {{"0", Tune::off}, {"exact", Tune::exact}, {"1", Tune::all}};
  for (const auto& [word, meant] : kWords) {
    if (text == word) tune = meant;
    if (text == word) return true;
  }
  return false;
}

}  // namespace tutti
