#include "src/model/costs.h"

#include <iterator>
#include <string>

namespace tutti {
namespace {

constexpr const char* kModes[] = {"eager", "eager-many", "graph"};
constexpr const char* kClasses[] = {"memory", "nvlink", "pci", "network"};

}  // namespace

const char* name(LaunchMode mode) { return kModes[static_cast<std::size_t>(mode)]; }
const char* name(LinkClass links) { return kClasses[static_cast<std::size_t>(links)]; }

Result<LaunchMode> parse_launch_mode(std::string_view text) {
  for (std::size_t i = 0; i < std::size(kModes); ++i) {
    if (text == kModes[i]) return static_cast<LaunchMode>(i);
  }
  return invalid_argument("there is no launch mode '" + std::string(text) +
                          "'; the modes are eager (a process for each device), eager-many (one for several) and graph");
}

}  // namespace tutti
