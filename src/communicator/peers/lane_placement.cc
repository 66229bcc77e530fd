#include "src/communicator/peers/lane_placement.h"

#include <algorithm>

namespace tutti {

std::size_t LanePlacements::host_pairs() const {
  return static_cast<std::size_t>(std::count(table_.begin(), table_.end(), LanePlacement::host));
}

bool LanePlacements::network() const {
  return std::find(table_.begin(), table_.end(), LanePlacement::network) != table_.end();
}

std::size_t LanePlacements::host_pairs_before(Rank writer, Rank reader) const {
  return static_cast<std::size_t>(
      std::count(table_.begin(), table_.begin() + std::ptrdiff_t{writer} * ranks_ + reader, LanePlacement::host));
}

Rank LanePlacements::writers_by(LanePlacement route, Rank reader) const {
  Rank writers = 0;
  for (Rank writer = 0; writer < ranks_; ++writer) {
    if (writer != reader && between(writer, reader) == route) ++writers;
  }
  return writers;
}

bool p2p_wanted(const DeviceDistance& distance, P2pLevel level) {
  return level != P2pLevel::loc && distance.level <= level;
}

std::string describe(const DeviceDistance& distance) {
  if (!distance.known) return "P2P, at an unknown distance";
  switch (distance.level) {
    case P2pLevel::loc: return "the same GPU";
    case P2pLevel::nvl: return "NVLink x" + std::to_string(distance.links);
    case P2pLevel::pix: return "P2P through a PCIe switch";
    case P2pLevel::pxb: return "P2P through PCIe switches";
    case P2pLevel::phb: return "P2P through a CPU";
    case P2pLevel::sys: return "P2P from CPU to CPU";
  }
  return "";
}

std::string describe_routes(const std::vector<std::string>& how, Rank self) {
  std::string text;
  for (Rank first = 0; first < how.size();) {
    Rank end = first + 1;
    while (end < how.size() && how[end] == how[first]) ++end;
    if (first != self) {
      text += text.empty() ? "to rank" : "; to rank";
      text += (end - first > 1 ? "s " : " ") + std::to_string(first);
      if (end - first > 1) text += "-" + std::to_string(end - 1);
      text += ": " + how[first];
    }
    first = end;
  }
  return text;
}

}  // namespace tutti
