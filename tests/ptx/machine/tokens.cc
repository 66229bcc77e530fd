#include "tests/ptx/machine/tokens.h"

#include <cctype>
#include <charconv>

namespace tutti::ptx {
namespace {

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' || c == '.';
}

std::size_t end_of_token(std::string_view text, std::size_t at) {
  if (text[at] == '"') {
    const std::size_t end = text.find('"', at + 1);
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  if (!in_word(text[at])) return at + 1;
  std::size_t end = at;
  while (end < text.size()) {
    const bool qualifier = text.substr(end, 2) == "::" && end + 2 < text.size() && in_word(text[end + 2]);
    if (!in_word(text[end]) && !qualifier) break;
    end += qualifier ? 2 : 1;
  }
  return end;
}

// Returns the first position at or after `at` that is neither blank nor comment, and counts lines.
std::size_t skip_blanks(std::string_view text, std::size_t at, std::uint32_t& line) {
  while (at < text.size()) {
    if (text[at] == '\n') ++line;
    if (std::isspace(static_cast<unsigned char>(text[at])) != 0) {
      ++at;
    } else if (text.substr(at, 2) == "//") {
      at = text.find('\n', at);
    } else if (text.substr(at, 2) == "/*") {
      const std::size_t end = text.find("*/", at + 2);
      for (std::size_t i = at; i < end && i < text.size(); ++i) line += text[i] == '\n' ? 1 : 0;
      at = end == std::string_view::npos ? end : end + 2;
    } else {
      break;
    }
  }
  return at;
}

}  // namespace

std::vector<Token> tokenize(std::string_view text) {
  std::vector<Token> tokens;
  tokens.reserve(text.size() / 5);
  std::uint32_t line = 1;
  for (std::size_t at = skip_blanks(text, 0, line); at < text.size(); at = skip_blanks(text, at, line)) {
    const std::size_t end = end_of_token(text, at);
    tokens.push_back({text.substr(at, end - at), line});
    at = end;
  }
  tokens.push_back({text.substr(text.size()), line});
  return tokens;
}

bool parse_number(std::string_view word, std::int64_t& value) {
  const bool negative = word.starts_with('-');
  if (negative) word.remove_prefix(1);
  if (word.ends_with('U')) word.remove_suffix(1);
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word[0])) == 0) return false;
  int base = 10;
  const std::string_view start = word.substr(0, 2);
  if (start == "0x" || start == "0X" || start == "0f" || start == "0F" || start == "0d" || start == "0D") base = 16;
  if (base == 16) word.remove_prefix(2);
  std::uint64_t bits = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), bits, base);
  if (error != std::errc() || end != word.data() + word.size()) return false;
  value = static_cast<std::int64_t>(negative ? 0 - bits : bits);
  return true;
}

}  // namespace tutti::ptx
