#include "src/communicator/own_host.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "src/base/config.h"
#include "src/topology/discover/discover.h"
#include "src/topology/discover/file.h"
#include "src/topology/discover/here.h"
#include "src/topology/fill.h"
#include "src/topology/tree.h"
#include "src/topology/ways.h"
#include "src/tuner/embed.h"

namespace tutti {
namespace {

// That the calling thread may run on; none if the system does not tell.
std::vector<std::uint32_t> own_cpus() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  std::vector<std::uint32_t> cpus;
  if (::sched_getaffinity(0, sizeof mine, &mine) != 0) return cpus;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mine)) cpus.push_back(cpu);
  return cpus;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

// Without the name, which notes would repeat: hosts that differ in nothing else are alike.
Topology filled_in(Topology topology) {
  topology.hosts.assign(1, "");
  fill_in(topology);
  return topology;
}

Result<Topology> from_file(const std::string& path) {
  const Topology topology = TUTTI_TRY(read_topology_file(path));
  return filled_in(TUTTI_TRY(only_host(topology, host_name(), path)));
}

// The processors that a device is nearest to.
std::uint32_t domain_near(const Topology& topology, NodeId device) {
  std::uint32_t domain = kNoDomain;
  Way best;
  for (const NodeId id : topology.all(NodeKind::numa)) {
    const Way found = way(topology, device, id);
    const bool nearer = best.kind == WayKind::none || found.nodes.size() < best.nodes.size();
    if (found.kind == WayKind::none || !nearer) continue;
    best = found;
    domain = topology.nodes[id].index;
  }
  return domain;
}

Result<Location> location_in(const Topology& topology, const std::string& gpu) {
  Location location;
  if (gpu.empty()) {
    location.domain = domain_of_cpus(own_cpus(), topology).value_or(kNoDomain);
    return location;
  }
  const std::vector<NodeId> gpus = topology.all(NodeKind::gpu);
  const auto found =
      std::find_if(gpus.begin(), gpus.end(), [&](NodeId id) { return topology.nodes[id].bus_id == gpu; });
  if (found == gpus.end())
    return invalid_argument(
        config().topo_file + " (TUTTI_TOPO_FILE or NCCL_TOPO_FILE) has no GPU " + gpu +
        ", on which this rank is: it is of another machine; unset it, or make one of this by `tutti "
        "topo --json`");
  location.domain = domain_near(topology, *found);
  const NodeId port = nearest_port(topology, *found, usable_ports(topology));
  if (port != kNoNode) set_port(location, topology.nodes[port].name);
  return location;
}

Location location_here(const std::string& gpu) {
  Location location;
  if (gpu.empty()) {
    location.domain = domain_of_cpus(own_cpus()).value_or(kNoDomain);
    return location;
  }
  const DevicePlace place = place_of_device(gpu);
  location.domain = place.domain.value_or(kNoDomain);
  set_port(location, place.port);
  return location;
}

}  // namespace

Result<Location> own_location(const std::string& gpu) {
  const std::string bus_id = gpu.empty() ? gpu : normal_bus_id(gpu);
  Location location;
  if (config().topo_file.empty()) {
    location = location_here(bus_id);
  } else {
    const Topology topology = TUTTI_TRY(from_file(config().topo_file));
    location = TUTTI_TRY(location_in(topology, bus_id));
  }
  set_gpu(location, bus_id);
  location.wants_topology = !bus_id.empty() || !config().topo_dump_file.empty() ? 1 : 0;
  return location;
}

Result<Topology> own_topology() {
  if (!config().topo_file.empty()) return from_file(config().topo_file);
  Discovery discovery = TUTTI_TRY(discover());
  return filled_in(std::move(discovery.topology));
}

}  // namespace tutti
