// Parsing of values in environment variables and configs.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace tutti::nccl {

// Stores the number. Returns false if the text is anything but one number; `number` is then unspecified.
template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Returns the words of a list, which commas separate, without spaces before them.
inline std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words(1);
  for (const char letter : list) {
    if (letter == ',') words.emplace_back();
    else if (letter != ' ' || !words.back().empty()) words.back() += letter;
  }
  return words;
}

}  // namespace tutti::nccl
