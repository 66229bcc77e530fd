#include "tools/tutti/explain_topology.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/communicator/autotuning/machine_name.h"
#include "src/model/gpu_kernel.h"
#include "tools/simulator/figures.h"
#include "tools/simulator/simulate.h"
#include "tools/tutti/request.h"
#include "tools/tutti/topologies.h"

namespace tutti::tool {
namespace {

// Sorted like ranks in simulator::Network and in launchers: by the driver's numbers.
std::vector<NodeId> gpus_by_rank(const Topology& host) {
  std::vector<NodeId> gpus = host.all(NodeKind::gpu);
  std::sort(gpus.begin(), gpus.end(), [&](NodeId a, NodeId b) { return host.nodes[a].index < host.nodes[b].index; });
  return gpus;
}

}  // namespace

Result<KnownTopology> explain_on(const ExplainedTopology& topology, Query& query) {
  constexpr std::uint32_t kMaxHosts = 1U << 24;
  SimulateRequest request;
  request.topology = topology.name;
  request.gpu = topology.gpu;
  request.cluster.hosts = 0;
  request.cluster.hosts_per_nvlink_domain = topology.nvlink_domain;
  if (!topology.hosts.empty()) {
    Result<std::uint32_t> hosts = parse_count(topology.hosts, 1, kMaxHosts);
    if (!hosts.ok()) return invalid_argument("--hosts " + topology.hosts + ": " + std::move(hosts).status().message());
    request.cluster.hosts = hosts.value();
  }
  if (TUTTI_TRY(named_topology(topology.name, topology.gpu)).all(NodeKind::gpu).empty())
    return invalid_argument(topology.name + " has no GPUs: use --ranks or --groups for host memory");
  Networks networks = TUTTI_TRY(networks_of(request));
  if (!config().mnnvl && topology.nvlink_domain == 0 && networks.own.hosts_per_nvlink_domain() > 1) {
    request.cluster.hosts_per_nvlink_domain = 1;
    networks = TUTTI_TRY(networks_of(request));
  }
  const simulator::Network& network = networks.own;
  if (query.problem.ranks > 0 && query.problem.ranks != network.ranks())
    return invalid_argument(topology.name + " has " + std::to_string(network.ranks()) + " ranks, but --ranks is " +
                            std::to_string(query.problem.ranks));
  const simulator::Costs costs = TUTTI_TRY(simulator::costs_of(network.cluster().host, simulator::Kernels::tutti));
  Machine machine = network.machine(costs);
  set_gpu_kernel(machine.costs);  // The tuner counts messages, not steps.
  query.problem = simulator::problem_on(network, query.problem.collective);
  query.thread_blocks = costs.max_channels;
  const Topology& host = network.cluster().host;
  std::string links = network.cluster().hosts == 1 ? links_in_words(host, gpus_by_rank(host)) : "";
  CallModel model(std::move(networks), costs, request.rings);
  query.only_rings = model.only_rings();
  query.on_nvlinks = model.on_nvlinks();
  model.set_lanes(query);
  query.ring = model.ring();
  query.by_switches =
      model.switches_add() && config().nvls && !(config().deterministic && reduces(query.problem.collective));
  query.by_switches_mapped = query.by_switches;
  query.network = model.spans_network();
  return KnownTopology{std::move(model), std::move(machine), std::move(links)};
}

}  // namespace tutti::tool
