#include "tests/ptx/machine/source.h"

namespace tutti::ptx {

std::uint32_t Locations::add(const Position& at, const Position& inlined_at) {
  const auto caller = latest_.find(inlined_at);
  all_.push_back({at, caller == latest_.end() ? 0 : caller->second});
  return latest_[at] = static_cast<std::uint32_t>(all_.size() - 1);
}

std::vector<Position> Locations::path(std::uint32_t location) const {
  std::vector<Position> path;
  for (; location != 0; location = all_[location].caller) path.push_back(all_[location].at);
  return path;
}

}  // namespace tutti::ptx
