#include "src/topology/plain_text.h"

#include <algorithm>
#include <cstdint>

namespace tutti {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

bool is_text(std::uint32_t character) {
  if (character < 0x20 || (character >= 0x7f && character < 0xa0)) return false;
  if (character >= 0xd800 && character < 0xe000) return false;
  return character <= 0x10ffff && (character & 0xfffe) != 0xfffe;
}

// Length in bytes of the allowed character at the beginning of `text`; 0 if there is none.
std::size_t length_of(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) return 0;
  std::uint32_t character = length == 1 ? first : first & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(text[i])) return 0;
    character = character << 6 | (static_cast<unsigned char>(text[i]) & 0x3fU);
  }
  constexpr std::uint32_t kMin[] = {0, 0, 0x80, 0x800, 0x10000};  // Rejects overlong encodings.
  return character >= kMin[length] && is_text(character) ? length : 0;
}

}  // namespace

std::size_t plain_until(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = length_of(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return at;
}

std::size_t plain_lines_until(std::string_view text) {
  std::size_t at = plain_until(text);
  while (at < text.size() && (text[at] == '\n' || text[at] == '\r' || text[at] == '\t'))
    at += 1 + plain_until(text.substr(at + 1));
  return at;
}

std::string_view beginning_of(std::string_view text, std::size_t max_bytes) {
  std::size_t length = std::min(text.size(), max_bytes);
  while (length > 0 && length < text.size() && continues(text[length])) --length;
  return text.substr(0, length);
}

}  // namespace tutti
