// Writes JSON to a file incrementally.
#pragma once

#include <cstdint>
#include <string>

namespace perf {

class Json {
 public:
  explicit Json(std::string path) : path_(std::move(path)) {}

  void open(const char* key, char bracket);  // Key: null inside an array and at the top level.
  void close(char bracket);
  void field(const char* key, const std::string& text);
  void field(const char* key, double number);
  void field(const char* key, std::uint64_t number);
  // Returns false, with errno set, if the file could not be written.
  bool finish();

 private:
  void begin(const char* key);

  std::string path_;
  std::string text_;
  int depth_ = 0;
  bool is_first_ = true;
};

}  // namespace perf
