#include "tools/tutti/ring_orders.h"

#include <algorithm>

#include "src/tuner/embed.h"

namespace tutti {

HostRings orders_on(const Network& network, std::uint32_t most) {
  const Topology& host = network.cluster().host;
  std::vector<NodeId> gpus = host.all(NodeKind::gpu);
  if (most == 0 || network.cluster().hosts != 1 || gpus.size() < network.ranks() ||
      !host.all(NodeKind::nvswitch).empty())
    return {};
  std::sort(gpus.begin(), gpus.end(), [&](NodeId a, NodeId b) { return host.nodes[a].index < host.nodes[b].index; });
  TopologyMerger merger;
  merger.add(host.hosts.front(), host);
  std::vector<Station> stations;
  for (Rank rank = 0; rank < network.ranks(); ++rank) stations.push_back({0, gpus[rank]});
  RankRings rings = find_rank_rings(merger.take(), stations, most);
  HostRings found{.orders = {}, .only_rings = rings.only_rings};
  for (std::vector<Rank>& order : rings.orders) found.orders.push_back({.groups = {}, .order = std::move(order)});
  return found;
}

}  // namespace tutti
