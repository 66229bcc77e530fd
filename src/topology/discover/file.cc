#include "src/topology/discover/file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "src/topology/formats.h"

namespace tutti {
namespace {

// Reads at most one chunk more than the readers' size limit, so that endless files do not exhaust memory.
Result<std::string> read_text(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return invalid_argument(path + " is a directory");
  std::ifstream file(path, std::ios::binary);
  if (!file) return system_error("open " + path);
  std::string text;
  std::vector<char> part(1U << 16);
  while (text.size() <= kMaxTopologyBytes &&
         (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0))
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
  if (file.bad()) return system_error("read " + path);
  return text;
}

}  // namespace

Result<Topology> read_topology_file(const std::string& path) {
  const std::string text = TUTTI_TRY(read_text(path));
  return read_topology(text, path);
}

Status write_topology_file(const std::string& path, const Topology& topology) {
  const std::string text =
      TUTTI_TRY(path.ends_with(".json") ? write_topology_json(topology) : write_nccl_xml(topology));
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return file ? Status() : system_error("write " + path);
}

Result<Topology> only_host(const Topology& topology, const std::string& name, const std::string& origin) {
  const auto found = std::find(topology.hosts.begin(), topology.hosts.end(), name);
  if (topology.hosts.size() == 1) return topology;
  if (found == topology.hosts.end())
    return invalid_argument(origin + " has " + std::to_string(topology.hosts.size()) +
                            " hosts, but no host has the name of this one, " + name);
  const auto host = static_cast<std::uint32_t>(found - topology.hosts.begin());
  constexpr NodeId kLeftOut = ~0U;
  std::vector<NodeId> becomes(topology.nodes.size(), kLeftOut);
  Topology one;
  one.hosts = {name};
  one.notes = topology.notes;
  for (NodeId id = 0; id < topology.nodes.size(); ++id) {
    if (topology.nodes[id].host != host) continue;
    becomes[id] = one.add(topology.nodes[id]);
    one.nodes.back().host = 0;
  }
  for (Link link : topology.links) {
    link.a = becomes[link.a];
    link.b = becomes[link.b];
    if (link.a != kLeftOut && link.b != kLeftOut) one.connect(link);
  }
  return one;
}

}  // namespace tutti
