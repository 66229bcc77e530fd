#include "src/communicator/planning/rings.h"

#include <algorithm>
#include <vector>

#include "src/tuner/embed.h"

namespace tutti {
namespace {

NodeId gpu_on(const Topology& topology, const std::string& bus_id) {
  for (NodeId id = 0; id < topology.nodes.size(); ++id)
    if (topology.nodes[id].kind == NodeKind::gpu && topology.nodes[id].bus_id == bus_id) return id;
  return kNoNode;
}

}  // namespace

std::vector<Embedding> ring_embeddings(const Hosts& hosts, std::uint32_t most) {
  const Embedding embedding = embedding_of(hosts.leaders());
  if (hosts.topology() == nullptr) return {embedding};
  std::vector<Station> stations;
  for (Rank rank = 0; rank < hosts.ranks(); ++rank) {
    const std::string gpu = gpu_of(hosts.location(rank));
    if (gpu.empty()) return {embedding};
    const std::uint32_t host = hosts.host_number(rank);
    stations.push_back({host, gpu_on(hosts.topology()->of(host), gpu)});
  }
  RankRings rings = find_rank_rings(*hosts.topology(), stations, most);
  if (rings.orders.empty()) return {embedding};
  std::vector<Embedding> embeddings;
  for (std::vector<Rank>& order : rings.orders) {
    if (std::is_sorted(order.begin(), order.end())) order.clear();
    embeddings.push_back({embedding.groups, std::move(order)});
  }
  return embeddings;
}

bool goes_round(std::string_view algorithm) {
  return algorithm == "ring" || algorithm == "chain" || algorithm == "hierarchical_ring";
}

}  // namespace tutti
