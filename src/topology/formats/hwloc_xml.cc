// Reader of hwloc XML files (versions 2 and 3), as `lstopo file.xml` writes them: processors, PCI, and the NVLinks
// found by NVML.
#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/base/cpu_list.h"
#include "src/base/read_number.h"
#include "src/topology/figures.h"
#include "src/topology/fill.h"
#include "src/topology/formats.h"
#include "src/topology/formats/xml.h"
#include "src/topology/tree.h"

namespace tutti {
namespace {

constexpr std::string_view kBridges = "Bridge", kDevices = "PCIDev", kSystem = "OSDev";

std::string_view type_of(const pugi::xml_node& object) { return object.attribute("type").value(); }

const char* info(const pugi::xml_node& object, const char* name) {
  return object.find_child_by_attribute("info", "name", name).attribute("value").value();
}

// Parses "0302 [10de:1db8] [10de:131d] a1 00": class, then vendor and device.
struct PciType {
  std::uint64_t pci_class = 0;
  std::uint32_t vendor = 0, device = 0;
};
PciType parse_pci_type(std::string_view text) {
  PciType type;
  if (text.size() < 16 || text[5] != '[' || text[10] != ':') return type;
  std::from_chars(text.data(), text.data() + 4, type.pci_class, 16);
  std::from_chars(text.data() + 6, text.data() + 10, type.vendor, 16);
  std::from_chars(text.data() + 11, text.data() + 15, type.device, 16);
  type.pci_class <<= 8;
  return type;
}

class HwlocReader {
 public:
  explicit HwlocReader(const Xml& xml) : xml_(xml) {}

  Result<Topology> read() {
    const pugi::xml_node root = xml_.root();
    if (std::string_view(root.name()) != "topology")
      return xml_.error_at(root, "the root element of a topology of hwloc is <topology>");
    const pugi::xml_node machine = root.child("object");
    if (!machine) return xml_.error_at(root, "has no <object>");
    const std::string host = info(machine, "HostName");
    host_ = tree_.host(host.empty() ? "host" : host);
    TUTTI_CHECK_OK(find_numa(machine, 0));
    if (numa_.empty()) return xml_.error_at(machine, "has no NUMANode");
    TUTTI_CHECK_OK(read_object(machine, numa_.begin()->second, 0));
    tree_.number_gpus();
    for (const pugi::xml_node& table : root.children())
      if (std::string_view(table.attribute("name").value()) == "NVLinkBandwidth") TUTTI_CHECK_OK(read_nvlinks(table));
    tree_.connect_sockets(host_, smp_gbytes_per_s(vendor_, family_, model_));
    return std::move(tree_.topology);
  }

 private:
  // Runs before read_object(), since an object may refer to its domain by nodeset only. Domains without processors are
  // device memory and are skipped.
  Status find_numa(const pugi::xml_node& at, std::uint32_t depth) {
    if (depth > kMaxTopologyDepth) return xml_.error_at(at, "<object> elements are nested too deeply");
    if (*info(at, "CPUVendor") != 0) vendor_ = info(at, "CPUVendor");
    if (*info(at, "CPUFamilyNumber") != 0) family_ = static_cast<std::uint32_t>(std::atoi(info(at, "CPUFamilyNumber")));
    if (*info(at, "CPUModelNumber") != 0) model_ = static_cast<std::uint32_t>(std::atoi(info(at, "CPUModelNumber")));
    for (const pugi::xml_node child : at.children("object")) {
      if (type_of(child) == "NUMANode") TUTTI_CHECK_OK(add_numa(child));
      TUTTI_CHECK_OK(find_numa(child, depth + 1));
    }
    return {};
  }

  Status add_numa(const pugi::xml_node& at) {
    Node node;
    node.host = host_;
    node.index = static_cast<std::uint32_t>(TUTTI_TRY(xml_.whole(at, "os_index", 0, kMaxDomains - 1)));
    node.name = "numa" + std::to_string(node.index);
    if (tree_.has(host_, node.name))
      return xml_.error_at(at, "NUMANode " + std::to_string(node.index) + " is listed twice");
    Result<std::string> cpus = cpus_of_mask(at.attribute("cpuset").value());
    if (!cpus.ok()) return xml_.error_at(at, std::move(cpus).status().message());
    if (cpus.value().empty()) return {};
    node.cpus = std::move(cpus).value();
    node.model = processor_model(vendor_, family_, model_);
    numa_.emplace(at.attribute("nodeset").value(), tree_.add(std::move(node)));
    return {};
  }

  // `parent` is the node above the devices of this object.
  Status read_object(const pugi::xml_node& at, NodeId parent, std::uint32_t depth) {
    const auto domain = numa_.find(at.attribute("nodeset").value());
    if (domain != numa_.end()) parent = domain->second;
    if (tree_.full()) return xml_.error_at(at, "too many nodes");
    if (type_of(at) == "L3Cache") TUTTI_CHECK_OK(add_cache(at, parent));
    if (type_of(at) == kDevices) return read_device(at, parent);
    if (type_of(at) == kBridges) parent = TUTTI_TRY(add_bridge(at, parent));
    for (const pugi::xml_node child : at.children("object")) TUTTI_CHECK_OK(read_object(child, parent, depth + 1));
    return {};
  }

  // A group of CPUs that share an L3 cache.
  Status add_cache(const pugi::xml_node& at, NodeId parent) {
    Node node;
    node.kind = NodeKind::cpu;
    node.host = host_;
    node.index = caches_++;
    node.name = "cpu" + std::to_string(node.index);
    Result<std::string> cpus = cpus_of_mask(at.attribute("cpuset").value());
    if (!cpus.ok()) return xml_.error_at(at, std::move(cpus).status().message());
    node.cpus = std::move(cpus).value();
    tree_.connect(parent, tree_.add(std::move(node)), LinkKind::memory, kMemoryGbytesPerS);
    return {};
  }

  Result<double> speed_of(const pugi::xml_node& at) const {
    const double reported = TUTTI_TRY(xml_.number(at, "pci_link_speed", 0, 1e5));
    return reported > 0 ? reported : pci_gbytes_per_s(8, 16);
  }

  Result<NodeId> add_bridge(const pugi::xml_node& at, NodeId parent) {
    if (*at.attribute("pci_busid").value() == 0) return parent;  // The host bridge.
    Node node;
    node.kind = NodeKind::pci_switch;
    node.host = host_;
    node.bus_id = TUTTI_TRY(xml_.bus_id(at, "pci_busid"));
    node.name = "pci " + node.bus_id;
    const double speed = TUTTI_TRY(speed_of(at));
    const NodeId id = tree_.add(std::move(node));
    tree_.connect(parent, id, LinkKind::pci, speed);
    return id;
  }

  Status read_device(const pugi::xml_node& at, NodeId parent) {
    const PciType type = parse_pci_type(at.attribute("pci_type").value());
    const double speed = TUTTI_TRY(speed_of(at));
    Node node;
    node.host = host_;
    node.bus_id = TUTTI_TRY(xml_.bus_id(at, "pci_busid"));
    node.model = model_of(type.vendor, type.device);
    if (std::string_view(at.attribute("subtype").value()) == "NVSwitch") {
      node.kind = NodeKind::nvswitch;
      node.name = "nvswitch" + std::to_string(switches_++);
    } else if (is_gpu(type.pci_class)) {
      const GpuModel* model = gpu_model(type.device);
      node.kind = NodeKind::gpu;
      node.index = kUnnumbered;
      node.sm = model == nullptr ? 0 : model->sm;
      node.name = "gpu " + node.bus_id;
    } else if (is_nic(type.pci_class)) {
      const pugi::xml_node system = at.find_child_by_attribute("object", "type", kSystem.data());
      node.kind = NodeKind::nic;
      node.index = 1;
      node.name = system ? system.attribute("name").value() : "nic " + node.bus_id;
    } else {
      return {};
    }
    const NodeId id = tree_.add(std::move(node));
    tree_.connect(parent, id, LinkKind::pci, speed);
    objects_.emplace("PCIDev:" + std::string(at.attribute("gp_index").value()), id);
    for (const pugi::xml_node part : at.children("object"))
      objects_.emplace("OSDev:" + std::string(part.attribute("gp_index").value()), id);
    return {};
  }

  // A square matrix of bandwidths in MB/s, split over several elements. Objects that this reader skips are absent from
  // objects_.
  Status read_nvlinks(const pugi::xml_node& table) {
    std::vector<std::string> names = words(table, "indexes");
    const std::vector<std::string> values = words(table, "u64values");
    if (values.size() != names.size() * names.size())
      return xml_.error_at(table,
                           std::to_string(values.size()) + " values for " + std::to_string(names.size()) + " objects");
    for (std::size_t a = 0; a < names.size(); ++a) {
      for (std::size_t b = a + 1; b < names.size(); ++b) {
        const std::string& value = values[a * names.size() + b];
        double megabytes = 0;
        if (!read_number(value, megabytes) || !(megabytes >= 0 && megabytes < 1e9))
          return xml_.error_at(table, "'" + value.substr(0, 64) + "' is not a bandwidth in MB/s");
        const auto from = objects_.find(names[a]), to = objects_.find(names[b]);
        if (from == objects_.end() || to == objects_.end() || from->second == to->second) continue;
        if (megabytes == 0) continue;
        const double brick = nvlink_gbytes_per_s(tree_.topology.nodes[from->second].sm, 1);
        const auto width = static_cast<std::uint32_t>(std::max(1.0, megabytes / 1000 / brick));
        tree_.connect(from->second, to->second, LinkKind::nvlink, megabytes / 1000, width);
      }
    }
    return {};
  }

  static std::vector<std::string> words(const pugi::xml_node& table, const char* parts) {
    std::vector<std::string> all;
    for (const pugi::xml_node part : table.children(parts)) {
      std::string_view text = part.child_value();
      while (!text.empty()) {
        const std::size_t space = std::min(text.find_first_of(" \n"), text.size());
        if (space > 0) all.emplace_back(text.substr(0, space));
        text.remove_prefix(std::min(space + 1, text.size()));
      }
    }
    return all;
  }

  const Xml& xml_;
  TopologyTree tree_;
  std::uint32_t host_ = 0, caches_ = 0, switches_ = 0, family_ = 0, model_ = 0;
  std::string vendor_;
  std::map<std::string, NodeId> numa_;     // Key: nodeset.
  std::map<std::string, NodeId> objects_;  // Key: the name used in tables, "PCIDev:449".
};

}  // namespace

Result<Topology> read_hwloc_xml(std::string_view text, const std::string& origin) {
  const Xml xml = TUTTI_TRY(Xml::parse(text, origin));
  return checked(TUTTI_TRY(HwlocReader(xml).read()), origin);
}

}  // namespace tutti
