// Numbers in settings, options and files.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace tutti {

// Stores the number. Returns false and leaves `number` unchanged if the text is anything but one number. `format`: the
// base of an integer, or a std::chars_format; as in std::from_chars().
template <typename Number, typename... Format>
bool read_number(std::string_view text, Number& number, Format... format) {
  Number read{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read, format...);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  number = read;
  return true;
}

}  // namespace tutti
