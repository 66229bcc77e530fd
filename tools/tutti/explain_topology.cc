#include "tools/tutti/explain_topology.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/communicator/planning/machine_name.h"
#include "tools/simulator/figures.h"
#include "tools/simulator/simulate.h"
#include "tools/tutti/request.h"
#include "tools/tutti/ring_orders.h"
#include "tools/tutti/topologies.h"

namespace tutti::tool {
namespace {

// In the order of ranks, as simulator::Network and launchers place them: by the driver's numbers.
std::vector<NodeId> gpus_by_rank(const Topology& host) {
  std::vector<NodeId> gpus = host.all(NodeKind::gpu);
  std::sort(gpus.begin(), gpus.end(), [&](NodeId a, NodeId b) { return host.nodes[a].index < host.nodes[b].index; });
  return gpus;
}

}  // namespace

Result<KnownTopology> explain_on(const ExplainedTopology& topology, Query& query) {
  constexpr std::uint32_t kMaxHosts = 1U << 24;
  simulator::Cluster cluster;
  cluster.host = TUTTI_TRY(named_topology(topology.name, topology.gpu));
  cluster.hosts = static_cast<std::uint32_t>(cluster.host.hosts.size());
  if (!topology.hosts.empty()) {
    Result<std::uint32_t> hosts = parse_count(topology.hosts, 1, kMaxHosts);
    if (!hosts.ok()) return invalid_argument("--hosts " + topology.hosts + ": " + std::move(hosts).status().message());
    cluster.hosts = hosts.value();
  }
  if (cluster.host.all(NodeKind::gpu).empty())
    return invalid_argument(topology.name + " has no GPUs: use --ranks or --groups for host memory");
  const simulator::Network network = TUTTI_TRY(simulator::Network::make(std::move(cluster)));
  if (query.problem.ranks > 0 && query.problem.ranks != network.ranks())
    return invalid_argument(topology.name + " has " + std::to_string(network.ranks()) + " ranks, but --ranks is " +
                            std::to_string(query.problem.ranks));
  const simulator::Costs costs = TUTTI_TRY(simulator::costs_of(network.cluster().host));
  KnownTopology known = {network.machine(costs), ""};
  query.problem = simulator::problem_on(network, query.problem.collective);
  query.network = known.machine.levels.back().links == LinkClass::network;
  query.thread_blocks = costs.max_channels;
  query.only_rings = orders_on(network, costs.max_channels).only_rings;
  const Topology& host = network.cluster().host;
  if (network.cluster().hosts == 1) known.links = links_in_words(host, gpus_by_rank(host));
  return known;
}

}  // namespace tutti::tool
