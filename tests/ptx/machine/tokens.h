// Tokens of PTX text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tutti::ptx {

struct Token {
  std::string_view text;
  std::uint32_t line = 0;
};

// Words (with dots, % and $), numbers, strings and punctuation, without comments. The last token is empty.
std::vector<Token> tokenize(std::string_view text);

// Returns the value of an integer, or the bits of a float in hexadecimal (0f..., 0d...). False if `word` is no number.
bool parse_number(std::string_view word, std::int64_t& value);

}  // namespace tutti::ptx
