// JSON output.
#pragma once

#include <string>
#include <string_view>

namespace tutti {

// Returns the text as a JSON string. Replaces control characters by blanks, since names contain none.
inline std::string json_quoted(std::string_view text) {
  std::string made = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') made += '\\';
    made += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
  }
  return made + "\"";
}

}  // namespace tutti
