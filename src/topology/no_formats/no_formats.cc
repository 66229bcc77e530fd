#include "src/topology/formats.h"

namespace tutti {
namespace {

Status absent() {
  return unsupported(
      "built without pugixml or nlohmann-json, so files of topologies are neither read nor written "
      "(Debian: apt-get install libpugixml-dev nlohmann-json3-dev, and build again)");
}

}  // namespace

Result<Topology> read_nccl_xml(std::string_view, const std::string&) { return absent(); }
Result<Topology> read_hwloc_xml(std::string_view, const std::string&) { return absent(); }
Result<Topology> read_topology_json(std::string_view, const std::string&) { return absent(); }
Result<Topology> read_topology(std::string_view, const std::string&) { return absent(); }
Result<std::string> write_topology_json(const Topology&) { return absent(); }
Result<std::string> write_nccl_xml(const Topology&) { return absent(); }

}  // namespace tutti
