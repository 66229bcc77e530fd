#include "src/topology/discover/files.h"

#include <dirent.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>

#include "src/base/owned.h"

namespace tutti {

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<std::int64_t> number_in(const std::string& path) {
  const std::optional<std::string> line = first_line(path);
  if (!line) return std::nullopt;
  char* end = nullptr;
  const std::int64_t value = std::strtoll(line->c_str(), &end, 0);
  if (end == line->c_str()) return std::nullopt;
  return value;
}

// Not std::filesystem::directory_iterator, which ends the process if memory lacks.
std::vector<std::string> entries(const std::string& folder) {
  std::vector<std::string> names;
  const Owned<DIR*, ::closedir, nullptr> opened(::opendir(folder.c_str()));
  if (!opened) return names;
  while (const dirent* entry = ::readdir(opened.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end(),
            [](const std::string& a, const std::string& b) { return ::strverscmp(a.c_str(), b.c_str()) < 0; });
  return names;
}

std::string resolved(const std::string& path) {
  char real[PATH_MAX];
  return ::realpath(path.c_str(), real) == nullptr ? std::string() : std::string(real);
}

}  // namespace tutti
