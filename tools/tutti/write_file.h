// Output files of commands.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "src/base/status.h"

namespace tutti::tool {

// Fails if write_file() could not write the file, without creating it.
inline Status check_can_write(const std::string& path) {
  struct stat there = {};
  if (::stat(path.c_str(), &there) != 0) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    return ::access(folder.c_str(), W_OK | X_OK) == 0 ? Status() : system_error("write into " + folder);
  }
  if (S_ISDIR(there.st_mode)) return invalid_usage(path + " is a directory");
  return ::access(path.c_str(), W_OK) == 0 ? Status() : system_error("write to " + path);
}

// Creates or replaces the file.
inline Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return file ? Status() : system_error("write " + path);
}

}  // namespace tutti::tool
