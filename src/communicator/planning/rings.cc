#include "src/communicator/planning/rings.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "src/tuner/choose.h"
#include "src/tuner/map_ranks.h"

namespace tutti {
RingOrders ring_orders(const Hosts& hosts, std::uint32_t max_rings) {
  const RankMapping rank_mapping = rank_mapping_of(hosts.first_ranks());
  if (hosts.topology() == nullptr || hosts.joined()) return {.each = {rank_mapping}};
  std::vector<RankNode> nodes;
  for (Rank rank = 0; rank < hosts.ranks(); ++rank) {
    const std::string gpu = gpu_of(hosts.location(rank));
    if (gpu.empty()) return {.each = {rank_mapping}};
    const std::uint32_t host = hosts.host_number(rank);
    nodes.push_back({host, gpu_on(hosts.topology()->of(host), gpu)});
  }
  RankRings rings = find_rank_rings(*hosts.topology(), nodes, max_rings);
  if (rings.orders.empty()) return {.each = {rank_mapping}};
  RingOrders orders;
  orders.only_rings = rings.only_rings;
  for (std::vector<Rank>& order : rings.orders) {
    if (std::is_sorted(order.begin(), order.end())) order.clear();
    orders.each.push_back({rank_mapping.groups, std::move(order)});
  }
  return orders;
}

RankMapping rail_rank_mapping(const Hosts& hosts) {
  RankMapping rank_mapping = rank_mapping_of(hosts.first_ranks());
  if (rank_mapping.groups.empty() || hosts.topology() == nullptr) return rank_mapping;
  const RankMapping numbered = rank_mapping;
  std::map<std::pair<const Topology*, std::string>, NodeId> known;  // By topology of the host and GPU.
  std::vector<NodeId> ports;                                        // By rank.
  for (Rank rank = 0; rank < hosts.ranks(); ++rank) {
    const Topology& topology = hosts.topology()->of(hosts.host_number(rank));
    const auto [port, is_new] = known.try_emplace({&topology, gpu_of(hosts.location(rank))}, kNoNode);
    if (is_new) {
      const NodeId gpu = gpu_on(topology, port->first.second);
      if (gpu != kNoNode) port->second = nearest_port(topology, gpu, usable_ports(topology));
    }
    if (port->second == kNoNode) return numbered;
    ports.push_back(port->second);
  }
  if (rank_mapping.order.empty()) {
    rank_mapping.order.resize(hosts.ranks());
    std::iota(rank_mapping.order.begin(), rank_mapping.order.end(), 0U);
  }
  auto first = rank_mapping.order.begin();
  for (const Rank members : rank_mapping.groups[0]) {
    std::stable_sort(first, first + members, [&](Rank a, Rank b) { return ports[a] < ports[b]; });
    first += members;
  }
  if (std::is_sorted(rank_mapping.order.begin(), rank_mapping.order.end())) rank_mapping.order.clear();
  return rank_mapping;
}

bool moves_blocks_with_ranks(std::string_view algorithm, Collective collective) {
  return (algorithm == "hierarchical" || algorithm == "host_ring" || is_staged_over_hosts(algorithm)) &&
         (collective == Collective::all_gather || collective == Collective::reduce_scatter);
}

}  // namespace tutti
