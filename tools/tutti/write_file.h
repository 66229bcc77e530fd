// Output files of commands.
#pragma once

#include <fstream>
#include <string>

#include "src/base/status.h"

namespace tutti::tool {

// Creates or replaces the file.
inline Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return file ? Status() : system_error("write " + path);
}

}  // namespace tutti::tool
