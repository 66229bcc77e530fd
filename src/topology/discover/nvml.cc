// What NVIDIA's management library tells of GPUs: their numbers, what they are, and where their NVLinks lead.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/base/library.h"
#include "src/topology/discover/parts.h"
#include "src/topology/figures.h"

namespace tutti {
namespace {

// As nvml.h declares them; a result of 0 is success.
struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct Nvml {
  int (*init)();
  int (*shutdown)();
  const char* (*words)(int);
  int (*count)(unsigned*);
  int (*device)(unsigned, void**);
  int (*name)(void*, char*, unsigned);
  int (*capability)(void*, int*, int*);
  int (*pci)(void*, PciInfo*);
  int (*link_active)(void*, unsigned, unsigned*);
  int (*link_end)(void*, unsigned, PciInfo*);
  int (*link_end_kind)(void*, unsigned, unsigned*);  // From driver 470 on; may be null.
};
constexpr unsigned kMostLinks = 18;
constexpr unsigned kEndIsSwitch = 2;

bool find_all(const Library& library, Nvml& nvml) {
  library.find("nvmlDeviceGetNvLinkRemoteDeviceType", nvml.link_end_kind);
  return library.find("nvmlInit_v2", nvml.init) && library.find("nvmlShutdown", nvml.shutdown) &&
         library.find("nvmlErrorString", nvml.words) && library.find("nvmlDeviceGetCount_v2", nvml.count) &&
         library.find("nvmlDeviceGetHandleByIndex_v2", nvml.device) && library.find("nvmlDeviceGetName", nvml.name) &&
         library.find("nvmlDeviceGetCudaComputeCapability", nvml.capability) &&
         library.find("nvmlDeviceGetPciInfo_v3", nvml.pci) &&
         library.find("nvmlDeviceGetNvLinkState", nvml.link_active) &&
         library.find("nvmlDeviceGetNvLinkRemotePciInfo_v2", nvml.link_end);
}

std::string bus_id_of(const PciInfo& pci) {
  return normal_bus_id(std::string_view(pci.bus_id, ::strnlen(pci.bus_id, sizeof pci.bus_id)));
}

// Containers may hide GPUs from sysfs.
NodeId gpu_on(TopologyTree& tree, const std::string& bus_id) {
  if (const NodeId* known = tree.on_bus(0, bus_id)) return *known;
  Node node;
  node.kind = NodeKind::gpu;
  node.bus_id = bus_id;
  node.name = "gpu " + bus_id;
  const NodeId id = tree.add(std::move(node));
  tree.connect(tree.topology.all(NodeKind::numa).front(), id, LinkKind::pci, pci_gbytes_per_s(8, 16), 16);
  return id;
}

// "10de:2330", or nothing: what is not listed (src/topology/fill.h). Listed names tell more than the driver's.
bool is_number(const std::string& model) { return model.empty() || (model.size() == 9 && model[4] == ':'); }

// In a container there may be more than the driver gives to us, which counts its own.
void set_aside_all_but(TopologyTree& tree, const std::set<NodeId>& ours) {
  for (const NodeId id : tree.topology.all(NodeKind::gpu)) {
    Node& gpu = tree.topology.nodes[id];
    if (ours.contains(id)) continue;
    gpu.index = kUnnumbered;
    gpu.name = "gpu " + gpu.bus_id;
    tree.note(gpu.name + " is not given to us by its driver");
  }
}

struct End {
  std::string bus_id;
  bool is_switch;
  bool operator<(const End& other) const { return bus_id < other.bus_id; }
};

std::map<End, unsigned> links_of(const Nvml& nvml, void* device) {
  std::map<End, unsigned> ends;  // How many links lead there.
  for (unsigned link = 0; link < kMostLinks; ++link) {
    unsigned active = 0, kind = kEndIsSwitch;
    PciInfo pci = {};
    if (nvml.link_active(device, link, &active) != 0 || active == 0) continue;
    if (nvml.link_end(device, link, &pci) != 0) continue;
    const bool told = nvml.link_end_kind != nullptr && nvml.link_end_kind(device, link, &kind) == 0;
    ++ends[{bus_id_of(pci), told ? kind == kEndIsSwitch : false}];
  }
  return ends;
}

Result<std::string> look(TopologyTree& tree, const Nvml& nvml) {
  unsigned count = 0;
  if (const int problem = nvml.count(&count))
    return unsupported(std::string("it counts no GPUs: ") + nvml.words(problem));
  std::vector<std::pair<NodeId, std::map<End, unsigned>>> links;
  std::set<NodeId> ours;
  for (unsigned index = 0; index < count; ++index) {
    void* device = nullptr;
    PciInfo pci = {};
    if (nvml.device(index, &device) != 0 || nvml.pci(device, &pci) != 0) continue;  // Lost, or not for us.
    const NodeId id = gpu_on(tree, bus_id_of(pci));
    Node& gpu = tree.topology.nodes[id];
    gpu.index = index;
    gpu.name = "gpu" + std::to_string(index);
    char name[96] = {};
    int major = 0, minor = 0;
    if (is_number(gpu.model) && nvml.name(device, name, sizeof name - 1) == 0) gpu.model = name;
    if (nvml.capability(device, &major, &minor) == 0) gpu.sm = static_cast<std::uint32_t>(major * 10 + minor);
    links.emplace_back(id, links_of(nvml, device));
    ours.insert(id);
  }
  set_aside_all_but(tree, ours);
  const auto told = [](const auto& gpu) { return !gpu.second.empty(); };
  if (std::any_of(links.begin(), links.end(), told))  // Whoever told of some before knows no more than the driver.
    std::erase_if(tree.topology.links, [](const Link& link) { return link.kind == LinkKind::nvlink; });
  std::size_t connected = 0;
  for (const auto& [gpu, ends] : links) {
    for (const auto& [end, width] : ends) {
      const NodeId* known = tree.on_bus(0, end.bus_id);
      if (known == nullptr && !end.is_switch) continue;  // A GPU that is hidden from us.
      const NodeId other = known != nullptr ? *known : tree.nvswitch(0, end.bus_id);
      connected += width;
      if (tree.topology.nodes[other].kind == NodeKind::gpu && other < gpu) continue;  // Told by both ends.
      tree.connect(gpu, other, LinkKind::nvlink, nvlink_gbytes_per_s(tree.topology.nodes[gpu].sm, width), width);
    }
  }
  return std::to_string(count) + " GPUs, " + std::to_string(connected) + " ends of NVLinks";
}

}  // namespace

Result<std::string> ask_nvml(TopologyTree& tree, const std::string& library) {
  const Library opened = TUTTI_TRY(Library::open(library));
  Nvml nvml = {};
  if (!find_all(opened, nvml)) return unsupported(library + " lacks functions that drivers from 418 on have");
  if (const int problem = nvml.init()) return unsupported(std::string("it does not start: ") + nvml.words(problem));
  Result<std::string> found = look(tree, nvml);
  nvml.shutdown();
  return found;
}

}  // namespace tutti
