#include "src/topology/merged.h"

#include <utility>

namespace tutti {

void TopologyMerger::add(std::string name, Topology topology) {
  topology.hosts.assign(1, "");
  for (Node& node : topology.nodes) node.host = 0;
  const auto next = static_cast<std::uint32_t>(merged_.kinds.size());
  const auto [known, is_new] = kinds_.try_emplace(packed(topology), next);
  if (is_new) merged_.kinds.push_back(std::move(topology));
  merged_.kind_of.push_back(known->second);
  merged_.names.push_back(std::move(name));
}

Topology expanded(const MergedTopology& whole) {
  std::vector<std::uint32_t> counts(whole.kinds.size(), 0);
  std::size_t nodes = 0;
  for (const std::uint32_t kind : whole.kind_of) {
    ++counts[kind];
    nodes += whole.kinds[kind].nodes.size();
  }
  const bool each = nodes <= kMaxNodes && whole.hosts() <= kMaxNodes;
  Topology all;
  std::vector<bool> shown(whole.kinds.size(), false);
  for (std::uint32_t host = 0; host < whole.hosts(); ++host) {
    const std::uint32_t kind = whole.kind_of[host];
    if (!each && shown[kind]) continue;
    Topology one = whole.kinds[kind];
    one.hosts = {whole.names[host]};
    if (shown[kind]) one.notes.clear();  // Already copied from the first host of this kind.
    if (!each && counts[kind] > 1)
      one.notes.push_back(whole.names[host] + " stands for " + std::to_string(counts[kind]) + " identical hosts");
    shown[kind] = true;
    all = merged(std::move(all), one);
  }
  return all;
}

}  // namespace tutti
