#include "tools/tutti/topologies.h"

#include <filesystem>
#include <vector>

#include "src/topology/discover/file.h"
#include "src/topology/figures.h"
#include "src/topology/fill.h"
#include "src/topology/presets.h"

namespace tutti::tool {

Result<Topology> named_topology(const std::string& name, const std::string& gpu) {
  Result<Topology> found = preset(name);
  if (!found.ok() && std::filesystem::exists(name)) found = read_topology_file(name);
  else if (!found.ok())
    return invalid_argument(std::move(found).status().message() + "; no file has this name, either");
  Topology topology = TUTTI_TRY(std::move(found));
  if (!gpu.empty()) TUTTI_CHECK_OK(name_gpus(topology, name, gpu));
  fill_in(topology);
  return topology;
}

Status name_gpus(Topology& topology, const std::string& name, const std::string& gpu) {
  const std::vector<NodeId> gpus = topology.all(NodeKind::gpu);
  if (gpus.empty()) return invalid_argument("--gpu: " + name + " has no GPUs");
  for (const NodeId id : gpus) {
    const std::string& known = topology.nodes[id].model;
    if (gpu_model(known) != nullptr)
      return invalid_argument("--gpu: the GPUs of " + name + " are " + known +
                              "; the option is for topologies that do not name the model");
  }
  return set_gpu_model(topology, gpu);
}

}  // namespace tutti::tool
