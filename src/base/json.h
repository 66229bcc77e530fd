// Text in JSON.
#pragma once

#include <string>
#include <string_view>

namespace tutti {

// In quotes. Control characters, of which no name has any, become blanks.
inline std::string json_quoted(std::string_view text) {
  std::string made = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') made += '\\';
    made += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
  }
  return made + "\"";
}

}  // namespace tutti
