// Topologies by name: presets and files.
#pragma once

#include <string>

#include "src/topology/topology.h"

namespace tutti::tool {

// Returns the preset or reads the file with this name, and adds known properties of such machines. `gpu`: model of the
// GPUs, set by name_gpus() unless empty.
Result<Topology> named_topology(const std::string& name, const std::string& gpu);

// Sets the model of the GPUs of `topology`. Error messages call the topology `name`. Fails with invalid_argument if the
// topology has no GPUs or has GPUs of a known model, and if `gpu` is not a known model.
Status name_gpus(Topology& topology, const std::string& name, const std::string& gpu);

}  // namespace tutti::tool
