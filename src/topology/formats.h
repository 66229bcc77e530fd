// Topologies as files: our JSON, NCCL's XML (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE; also vendors' files, which leave to
// the reader what GPUs and network cards there are) and hwloc's. Built where pugixml and nlohmann-json are; no_formats
// stands in its place elsewhere.
//
// A text that is none fails with `origin`, the line, and what is wrong there; nothing outside it is read. At most
// 64 MiB, 64 levels and 100,000 nodes and hosts are taken, and 128 NUMA domains of a host.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "src/topology/topology.h"

namespace tutti {

inline constexpr std::size_t kLongestTopology = 64u << 20;  // A file, in bytes.

Result<Topology> read_nccl_xml(std::string_view text, const std::string& origin);
Result<Topology> read_hwloc_xml(std::string_view text, const std::string& origin);
Result<Topology> read_topology_json(std::string_view text, const std::string& origin);
// Whichever of these it is.
Result<Topology> read_topology(std::string_view text, const std::string& origin);

Result<std::string> write_topology_json(const Topology& topology);
// What NCCL's format has no word for (latencies, names of models, switches of a network) is left out.
Result<std::string> write_nccl_xml(const Topology& topology);

}  // namespace tutti
