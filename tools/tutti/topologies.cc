#include "tools/tutti/topologies.h"

#include <filesystem>

#include "src/topology/discover/file.h"
#include "src/topology/fill.h"
#include "src/topology/presets.h"

namespace tutti {

Result<Topology> named_topology(const std::string& name) {
  Result<Topology> found = preset(name);
  if (!found.ok() && std::filesystem::exists(name)) found = read_topology_file(name);
  else if (!found.ok()) return invalid_argument(std::move(found).status().message() + ", and no file of this name");
  Topology topology = TUTTI_TRY(std::move(found));
  fill_in(topology);
  return topology;
}

}  // namespace tutti
