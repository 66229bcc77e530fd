// Counts in sentences: "1 rank", "2 ranks".
#pragma once

#include <cstddef>
#include <string>

namespace tutti {

inline std::string counted(std::size_t count, const char* one, const char* more) {
  return std::to_string(count) + " " + (count == 1 ? one : more);
}
inline std::string counted(std::size_t count, const std::string& one) {
  return counted(count, one.c_str(), (one + "s").c_str());
}

}  // namespace tutti
