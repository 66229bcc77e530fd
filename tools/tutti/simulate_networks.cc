#include "tools/tutti/simulate_networks.h"

#include <utility>

#include "tools/tutti/topologies.h"

namespace tutti::tool {

Result<Networks> networks_of(const SimulateRequest& request) {
  simulator::Cluster cluster = request.cluster;
  cluster.host = TUTTI_TRY(named_topology(request.topology, request.gpu));
  if (cluster.hosts == 0) cluster.hosts = static_cast<std::uint32_t>(cluster.host.hosts.size());
  simulator::Network own = TUTTI_TRY(simulator::Network::make(cluster));
  cluster.faults = own.cluster().faults;
  const bool has_domain = cluster.hosts_per_nvlink_domain > 0;
  cluster.spread = cluster.hosts > (has_domain ? own.hosts_per_nvlink_domain() : cluster.host.hosts.size());
  Result<simulator::Network> spread = simulator::Network::make(cluster);
  if (spread.ok()) return Networks{std::move(own), std::move(spread).value()};
  if (!cluster.spread) return std::move(spread).status();
  cluster.spread = false;  // A fault names a link that several ports share.
  simulator::Network flat = TUTTI_TRY(simulator::Network::make(std::move(cluster)));
  Networks networks{std::move(own), std::move(flat)};
  networks.note =
      "flat algorithms use one port per rank instead of all ports of a host: " + std::move(spread).status().message();
  return networks;
}

}  // namespace tutti::tool
