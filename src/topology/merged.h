// A cluster with identical hosts stored once, so that a thousand equal hosts take the memory of one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/topology/topology.h"

namespace tutti {

struct MergedTopology {
  std::vector<Topology> kinds;         // One host each, without its name.
  std::vector<std::uint32_t> kind_of;  // [host]: index into kinds.
  std::vector<std::string> names;      // [host]

  const Topology& of(std::uint32_t host) const { return kinds[kind_of[host]]; }
  std::size_t hosts() const { return kind_of.size(); }
};

class TopologyMerger {
 public:
  // Adds one host. All nodes of `topology` are assigned to it.
  void add(std::string name, Topology topology);
  MergedTopology take() { return std::move(merged_); }

 private:
  MergedTopology merged_;
  std::map<std::string, std::uint32_t> kinds_;  // Key: packed() bytes.
};

// Expands to one host per entry, for files. If the result would exceed the readers' limits, only one host of each kind
// is kept, and a note states how many hosts it represents.
Topology expanded(const MergedTopology& whole);

// Limits for topologies exchanged between ranks, because receivers run searches on them. The limits are five times the
// largest preset: gb200-nvl72 with 72 GPUs and 18 NVSwitches has 198 nodes and 1530 links. Ordinary hosts have at most
// 16 GPUs.
inline constexpr std::uint32_t kMaxNodesSent = 1024;
inline constexpr std::uint32_t kMaxLinksSent = 8192;
// True if the topology is within these limits.
bool fits_broadcast(const Topology& topology);

// Serialises a topology. Equal topologies give equal bytes.
std::string packed(const Topology& topology);
// Parses the output of packed(). Fails if the bytes are malformed, exceed the limits above, or fail check(). `origin`
// begins the error message.
Result<Topology> unpacked(const std::string& bytes, const std::string& origin);

}  // namespace tutti
