// Many hosts, those that are alike kept once: what a communicator knows of a thousand of them takes the memory of one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/topology/topology.h"

namespace tutti {

struct MergedTopology {
  std::vector<Topology> kinds;         // Each of one host, without its name.
  std::vector<std::uint32_t> kind_of;  // [host]: an index of kinds.
  std::vector<std::string> names;      // [host]

  const Topology& of(std::uint32_t host) const { return kinds[kind_of[host]]; }
  std::size_t hosts() const { return kind_of.size(); }
};

class TopologyMerger {
 public:
  // The topology of one host, or as if it were one.
  void add(std::string name, Topology topology);
  MergedTopology take() { return std::move(merged_); }

 private:
  MergedTopology merged_;
  std::map<std::string, std::uint32_t> kinds_;  // By what they are packed as.
};

// Each host by itself again, for files; of so many that no reader would take them, one of each kind, with a note that
// says how many there are.
Topology unfolded(const MergedTopology& whole);

// Of a topology that travels, since whoever hears it searches it: five times what the largest preset has, gb200-nvl72
// with 72 GPUs at 18 NVSwitches (198 nodes, 1530 links). Hosts have 16 GPUs at most.
inline constexpr std::uint32_t kMaxNodesSent = 1024;
inline constexpr std::uint32_t kMaxLinksSent = 8192;
bool fits_broadcast(const Topology& topology);

// How a topology travels: plain bytes, the same for the same topology.
std::string packed(const Topology& topology);
// What is no such thing, has more than can be told, or is no sound topology, is refused, and says that it is from
// `origin`.
Result<Topology> unpacked(const std::string& bytes, const std::string& origin);

}  // namespace tutti
