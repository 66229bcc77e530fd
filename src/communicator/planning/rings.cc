#include "src/communicator/planning/rings.h"

#include <algorithm>
#include <string_view>
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

Embedding ring_embedding(const Hosts& hosts) {
  Embedding embedding = embedding_of(hosts.leaders());
  if (hosts.topology() == nullptr) return embedding;
  std::vector<Station> stations;
  for (Rank rank = 0; rank < hosts.ranks(); ++rank) {
    const std::string gpu = gpu_of(hosts.location(rank));
    if (gpu.empty()) return embedding;
    const std::uint32_t host = hosts.host_number(rank);
    stations.push_back({host, gpu_on(hosts.topology()->of(host), gpu)});
  }
  RankRings rings = find_rank_rings(*hosts.topology(), stations);
  if (rings.orders.empty()) return embedding;
  embedding.order = std::move(rings.orders.front());
  if (std::is_sorted(embedding.order.begin(), embedding.order.end())) embedding.order.clear();
  return embedding;
}

bool goes_round(const Algorithm& algorithm) {
  const std::string_view name = algorithm.name();
  return name == "ring" || name == "chain" || name == "hierarchical_ring";
}

}  // namespace tutti
