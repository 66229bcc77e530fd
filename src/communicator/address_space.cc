#include "src/communicator/address_space.h"

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace tutti {
namespace {

// A line of /proc/self/maps.
struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string mode;  // "rw-p"
  std::uint64_t inode = 0;
  std::string name;  // Empty, a path, or "[heap]".

  bool ordinary() const {
    return mode.starts_with("rw") && mode.back() == 'p' && inode == 0 &&
           (name.empty() || name == "[heap]" || name.starts_with("[anon"));
  }
};

std::optional<Mapping> parse(const std::string& line) {
  Mapping mapping;
  char dash = 0;
  std::string offset, device;
  std::istringstream words(line);
  words >> std::hex >> mapping.begin >> dash >> mapping.end >> mapping.mode >> offset >> device >> std::dec >>
      mapping.inode;
  if (!words) return std::nullopt;
  std::getline(words >> std::ws, mapping.name);
  return mapping;
}

std::string hex(std::uint64_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

Status not_ordinary(std::uint64_t at, const std::string& what) {
  return unsupported("at " + hex(at) + " is " + what +
                     ": only private anonymous memory can be registered, as mmap or aligned_alloc gives it");
}

}  // namespace

Status check_ordinary(const std::byte* memory, std::size_t bytes) {
  auto next = reinterpret_cast<std::uint64_t>(memory);  // All before it is found good.
  const std::uint64_t end = next + bytes;
  std::ifstream maps("/proc/self/maps");
  if (!maps) return system_error("open /proc/self/maps");
  for (std::string line; next < end && std::getline(maps, line);) {
    const auto mapping = parse(line);
    if (!mapping || mapping->end <= next) continue;
    if (mapping->begin > next) break;
    if (!mapping->ordinary()) return not_ordinary(next, "'" + mapping->mode + " " + mapping->name + "'");
    next = mapping->end;
  }
  return next < end ? not_ordinary(next, "nothing mapped") : Status();
}

}  // namespace tutti
