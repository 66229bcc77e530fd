// Topology file formats: our JSON, NCCL's XML (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE) and hwloc's XML. Vendor files in
// NCCL's format may omit GPUs and NICs; the reader infers them. Requires pugixml and nlohmann-json; no_formats replaces
// this folder in builds without them.
//
// Errors begin with `origin` and contain the line and the reason. Readers access nothing but `text`. Limits: 64 MiB, 64
// levels of nesting, 100,000 nodes, 100,000 hosts, 128 NUMA domains per host.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "src/topology/topology.h"

namespace tutti {

inline constexpr std::size_t kMaxTopologyBytes = 64u << 20;  // Maximum file size in bytes.

Result<Topology> read_nccl_xml(std::string_view text, const std::string& origin);
Result<Topology> read_hwloc_xml(std::string_view text, const std::string& origin);
Result<Topology> read_topology_json(std::string_view text, const std::string& origin);
// Detects the format from the first characters and the root element.
Result<Topology> read_topology(std::string_view text, const std::string& origin);

Result<std::string> write_topology_json(const Topology& topology);
// Drops properties that NCCL's format cannot express: latencies, model names, network switches.
Result<std::string> write_nccl_xml(const Topology& topology);

}  // namespace tutti
