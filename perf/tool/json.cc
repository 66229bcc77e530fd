#include "perf/tool/json.h"

#include <cstdio>

namespace perf {

void Json::begin(const char* key) {
  if (!is_first_) text_.push_back(',');
  is_first_ = false;
  text_.append(depth_ == 0 ? "" : "\n").append(static_cast<std::size_t>(depth_) * 2, ' ');
  if (key != nullptr) text_.append("\"").append(key).append("\": ");
}

void Json::open(const char* key, char bracket) {
  begin(key);
  text_.push_back(bracket);
  ++depth_;
  is_first_ = true;
}

void Json::close(char bracket) {
  --depth_;
  text_.append("\n").append(static_cast<std::size_t>(depth_) * 2, ' ').push_back(bracket);
  is_first_ = false;
}

void Json::field(const char* key, const std::string& text) {
  begin(key);
  text_.push_back('"');
  for (const char c : text) {
    char escaped[8];
    if (c == '"' || c == '\\') {
      text_.push_back('\\');
      text_.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      text_.append(escaped);
    } else {
      text_.push_back(c);
    }
  }
  text_.push_back('"');
}

void Json::field(const char* key, double number) {
  begin(key);
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", number);
  text_.append(text);
}

void Json::field(const char* key, std::uint64_t number) {
  begin(key);
  text_.append(std::to_string(number));
}

bool Json::finish() {
  text_.push_back('\n');
  std::FILE* file = std::fopen(path_.c_str(), "w");
  if (file == nullptr) return false;
  const bool written = std::fwrite(text_.data(), 1, text_.size(), file) == text_.size();
  return std::fclose(file) == 0 && written;
}

}  // namespace perf
