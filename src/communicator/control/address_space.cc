#include "src/communicator/control/address_space.h"

#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace tutti {
namespace {

// A line of /proc/self/maps.
struct MapsEntry {
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

std::optional<MapsEntry> parse(const std::string& line) {
  MapsEntry mapping;
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

// Returns the first range that `right` rejects, such as "at 0x7f00 is nothing mapped"; empty if all ranges pass.
template <typename Right>
Result<std::string> find_wrong(const std::byte* memory, std::size_t bytes, const Right& right) {
  auto next = reinterpret_cast<std::uint64_t>(memory);  // All addresses below have passed.
  const std::uint64_t end = next + bytes;
  std::ifstream maps("/proc/self/maps");
  if (!maps) return system_error("open /proc/self/maps");
  for (std::string line; next < end && std::getline(maps, line);) {
    const auto mapping = parse(line);
    if (!mapping || mapping->end <= next) continue;
    if (mapping->begin > next) break;
    if (!right(*mapping))
      return "at " + hex(next) + " is '" + mapping->mode + (mapping->name.empty() ? "" : " ") + mapping->name + "'";
    next = mapping->end;
  }
  return next < end ? "at " + hex(next) + " is nothing mapped" : std::string();
}

}  // namespace

Status check_ordinary(const std::byte* memory, std::size_t bytes) {
  const std::string wrong =
      TUTTI_TRY(find_wrong(memory, bytes, [](const MapsEntry& mapping) { return mapping.ordinary(); }));
  if (wrong.empty()) return {};
  return unsupported(wrong +
                     ": only private anonymous memory that may be written can be registered, as mmap (PROT_WRITE) or "
                     "aligned_alloc gives it");
}

Status check_shared(const std::byte* memory, std::size_t bytes, int descriptor) {
  struct stat file = {};
  if (::fstat(descriptor, &file) != 0) return system_error("stat registered memory");
  const auto is_file = [&](const MapsEntry& mapping) { return mapping.inode == file.st_ino; };
  const std::string wrong = TUTTI_TRY(find_wrong(memory, bytes, is_file));
  if (wrong.empty()) return {};
  return invalid_usage(wrong + ": the memory went away while it was registered; deregister before free() or munmap()");
}

}  // namespace tutti
