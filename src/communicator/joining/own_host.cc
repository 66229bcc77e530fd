#include "src/communicator/joining/own_host.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "src/base/config.h"
#include "src/base/instructions.h"
#include "src/base/log.h"
#include "src/base/own_cpus.h"
#include "src/topology/discover/discover.h"
#include "src/topology/discover/file.h"
#include "src/topology/discover/local_host.h"
#include "src/topology/fill.h"
#include "src/topology/paths.h"
#include "src/topology/tree.h"
#include "src/tuner/map_ranks.h"

namespace tutti {
namespace {

// Removes the host name, so that hosts which differ only in the name have the same topology.
Topology filled_in(Topology topology) {
  topology.hosts.assign(1, "");
  fill_in(topology);
  return topology;
}

Result<Topology> from_file(const std::string& path) {
  const Topology topology = TUTTI_TRY(read_topology_file(path));
  return filled_in(TUTTI_TRY(only_host(topology, host_name(), path)));
}

// NCCL_TOPO_FILE may be left over from another machine, so an unusable file is no error. TUTTI_TOPO_FILE is intended.
bool named_by_nccl() {
  return std::any_of(settings().begin(), settings().end(),
                     [](const Setting& setting) { return setting.source == "NCCL_TOPO_FILE"; });
}

// Returns the topology of the file that is set; nullopt if no file is set. Also returns nullopt if NCCL_TOPO_FILE names
// the file and it does not fit this rank.
Result<std::optional<Topology>> by_file(const std::string& gpu) {
  if (config().topo_file.empty()) return std::optional<Topology>();
  Result<Topology> found = from_file(config().topo_file);
  if (found.ok() && !gpu.empty() && gpu_on(found.value(), gpu) == kNoNode)
    found = invalid_argument(config().topo_file + " has no GPU " + gpu +
                             " of this rank: the file describes another machine; unset the variable, or create a file "
                             "with `tutti topo --json`");
  if (found.ok()) return std::optional<Topology>(std::move(found).value());
  Status refused = std::move(found).status();
  if (!named_by_nccl()) return std::move(refused).during("reading TUTTI_TOPO_FILE");
  log(LogLevel::warn, "NCCL_TOPO_FILE is ignored; using discovery: %s", refused.message().c_str());
  return std::optional<Topology>();
}

// Returns the NUMA domain nearest to a device.
std::uint32_t domain_near(const Topology& topology, NodeId device) {
  std::uint32_t domain = kNoDomain;
  NodePath best;
  for (const NodeId id : topology.all(NodeKind::numa)) {
    const NodePath found = find_path(topology, device, id);
    const bool nearer = best.kind == PathKind::none || found.nodes.size() < best.nodes.size();
    if (found.kind == PathKind::none || !nearer) continue;
    best = found;
    domain = topology.nodes[id].index;
  }
  return domain;
}

Location location_in(const Topology& topology, const std::string& gpu) {
  Location location;
  if (gpu.empty()) {
    location.domain = domain_of_cpus(own_cpus(), topology).value_or(kNoDomain);
    return location;
  }
  location.domain = domain_near(topology, gpu_on(topology, gpu));
  return location;
}

Location location_here(const std::string& gpu) {
  Location location;
  if (gpu.empty()) {
    location.domain = domain_of_cpus(own_cpus()).value_or(kNoDomain);
    return location;
  }
  location.domain = domain_of_device(gpu).value_or(kNoDomain);
  return location;
}

}  // namespace

Result<Location> own_location(const std::string& gpu) {
  const std::string bus_id = gpu.empty() ? gpu : normal_bus_id(gpu);
  const std::optional<Topology> reported = TUTTI_TRY(by_file(bus_id));
  Location location = reported ? location_in(*reported, bus_id) : location_here(bus_id);
  set_gpu(location, bus_id);
  location.instructions = number_of(widest_instructions());
  location.wants_topology = !bus_id.empty() || !config().topo_dump_file.empty() ? 1 : 0;
  return location;
}

Result<Topology> own_topology(const std::string& gpu) {
  std::optional<Topology> reported = TUTTI_TRY(by_file(gpu));
  if (reported) return std::move(*reported);
  Discovery discovery = TUTTI_TRY(discover());
  return filled_in(std::move(discovery.topology));
}

}  // namespace tutti
