// Validation of text from files before it is printed: UTF-8 only, no characters that confuse a terminal or that XML
// forbids.
#pragma once

#include <cstddef>
#include <string_view>

namespace tutti {

// Returns the offset of the first byte that is not part of an allowed character, or text.size(). Rejected: malformed
// UTF-8 (RFC 3629), control characters, surrogates and Unicode noncharacters.
std::size_t plain_until(std::string_view text);
// Like plain_until(), but also allows tabs and line ends, for whole files.
std::size_t plain_lines_until(std::string_view text);
// Returns the longest prefix of at most `max_bytes` bytes that does not split a character.
std::string_view beginning_of(std::string_view text, std::size_t max_bytes);

}  // namespace tutti
