#include "tools/tutti/ring_orders.h"

#include <algorithm>
#include <string>
#include <utility>

#include "src/communicator/planning/rings.h"
#include "src/tuner/choose.h"
#include "src/tuner/map_ranks.h"

namespace tutti::tool {

namespace {

constexpr Rank kMaxRanksInOrders = 4096;

}  // namespace

HostRings orders_on(const simulator::Network& network, std::uint32_t max_orders) {
  const std::uint32_t hosts = network.cluster().hosts;
  const Topology& host = network.cluster().host;
  std::vector<NodeId> gpus = host.all(NodeKind::gpu);
  const bool alike = network.hosts_per_nvlink_domain() > 1 || (hosts == 1 && !host.all(NodeKind::nvswitch).empty());
  if (max_orders == 0 || alike || host.hosts.size() > 1 || gpus.size() < network.ranks_per_host() ||
      network.ranks() > kMaxRanksInOrders)
    return {};
  std::sort(gpus.begin(), gpus.end(), [&](NodeId a, NodeId b) { return host.nodes[a].index < host.nodes[b].index; });
  TopologyMerger merger;
  for (std::uint32_t i = 0; i < hosts; ++i) merger.add("host" + std::to_string(i), host);
  std::vector<RankNode> rank_nodes;
  for (Rank rank = 0; rank < network.ranks(); ++rank)
    rank_nodes.push_back({rank / network.ranks_per_host(), gpus[rank % network.ranks_per_host()]});
  RankRings rings = find_rank_rings(merger.take(), rank_nodes, max_orders);
  HostRings found{.orders = {}, .only_rings = rings.only_rings};
  for (std::vector<Rank>& order : rings.orders) found.orders.push_back({.groups = {}, .order = std::move(order)});
  return found;
}

std::vector<RankMapping> orders_of(const simulator::Network& network, const HostRings& rings,
                                   std::string_view algorithm) {
  const bool counts = network.cluster().hosts == 1 || algorithm == "hierarchical_tree";
  return uses_rank_order(algorithm) && counts ? rings.orders : std::vector<RankMapping>();
}

}  // namespace tutti::tool
