#include "src/topology/fill.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "src/topology/figures.h"

namespace tutti {
namespace {

struct NicModel {
  std::uint32_t vendor, device;
  std::string_view name;
  double megabits_per_s;
};
// Names and devices: the PCI ID repository. Speeds: the fastest port that the maker sells.
constexpr NicModel kNicModels[] = {
    {0x1d0f, 0xefa0, "EFA", 100'000},           {0x1d0f, 0xefa1, "EFA-2", 100'000},
    {0x1d0f, 0xefa2, "EFA-3", 200'000},         {0x15b3, 0x1017, "ConnectX-5", 100'000},
    {0x15b3, 0x1019, "ConnectX-5-Ex", 100'000}, {0x15b3, 0x101b, "ConnectX-6", 200'000},
    {0x15b3, 0x101d, "ConnectX-6-Dx", 200'000}, {0x15b3, 0x1021, "ConnectX-7", 400'000},
    {0x1af4, 0x1000, "virtio", 10'000},         {0x1af4, 0x1041, "virtio", 10'000},
    {0x15b3, 0x1023, "ConnectX-8", 800'000},
};
constexpr double kPortSpeeds[] = {10'000, 25'000, 50'000, 100'000, 200'000, 400'000, 800'000};  // Mbit/s

bool has_nvlinks(const Topology& topology, std::uint32_t host) {
  for (const Link& link : topology.links)
    if (link.kind == LinkKind::nvlink && topology.nodes[link.a].host == host) return true;
  return false;
}

// Once: who reads what somebody has filled in and written finds it there.
void note(Topology& topology, const std::string& text) {
  const std::vector<std::string>& notes = topology.notes;
  if (std::find(notes.begin(), notes.end(), text) == notes.end()) topology.notes.push_back(text);
}

// Of a host without a name nothing.
std::string shown(const Topology& topology, std::uint32_t host) {
  const std::string& name = topology.hosts[host];
  return name.empty() ? name : "host '" + name + "': ";
}

bool has(const Topology& topology, std::uint32_t host, const std::string& name) {
  return std::any_of(topology.nodes.begin(), topology.nodes.end(),
                     [&](const Node& node) { return node.host == host && node.name == name; });
}

// Boards with 8 or 16 GPUs have NVSwitches, all links of a GPU into them; those with 4 a mesh of equal parts.
void add_nvlinks(Topology& topology, std::uint32_t host, const std::vector<NodeId>& gpus, const GpuModel& model) {
  const double all = nvlink_gbytes_per_s(model.sm, model.nvlinks);
  const double latency = latency_us(LinkKind::nvlink);
  const std::string whose = shown(topology, host) + std::to_string(gpus.size()) + " " + std::string(model.name);
  if (gpus.size() == 4) {
    for (std::size_t a = 0; a < 4; ++a)
      for (std::size_t b = a + 1; b < 4; ++b)
        topology.connect({gpus[a], gpus[b], LinkKind::nvlink, all / 3, latency, model.nvlinks / 3});
    note(topology, whose + " without NVLinks: taken for a board on which each has a third of its own to each other");
    return;
  }
  Node nvswitch;
  nvswitch.kind = NodeKind::nvswitch;
  nvswitch.host = host;
  nvswitch.name = "nvswitches";
  while (has(topology, host, nvswitch.name)) nvswitch.name += "'";
  const NodeId middle = topology.add(std::move(nvswitch));
  for (const NodeId gpu : gpus) topology.connect({gpu, middle, LinkKind::nvlink, all, latency, model.nvlinks});
  note(topology, whose + " without NVLinks: taken for a board on which all of them lead to NVSwitches, shown as one");
}

std::vector<NodeId> all(const Topology& topology, NodeKind kind, std::uint32_t host) {
  std::vector<NodeId> found = topology.all(kind);
  std::erase_if(found, [&](NodeId id) { return topology.nodes[id].host != host; });
  return found;
}

// The two boards of a DGX-2 are joined switch by switch, by 8 links each, of which no driver tells (NVIDIA's NVSwitch
// technical overview, 2018).
void join_boards(Topology& topology, std::uint32_t host, const std::vector<NodeId>& gpus) {
  const std::vector<NodeId> switches = all(topology, NodeKind::nvswitch, host);
  if (gpus.size() != 16 || switches.size() != 12 || topology.nodes[gpus[0]].model != "V100-SXM3-32GB") return;
  for (const Link& link : topology.links) {
    const bool trunk = topology.nodes[link.a].kind == NodeKind::nvswitch && link.kind == LinkKind::nvlink &&
                       topology.nodes[link.b].kind == NodeKind::nvswitch;
    if (trunk) return;
  }
  for (std::size_t i = 0; i < 6; ++i)
    topology.connect({switches[i], switches[i + 6], LinkKind::nvlink, 200, latency_us(LinkKind::nvlink), 8});
  note(topology, shown(topology, host) +
                     "a DGX-2, by its 16 V100-SXM3 and 12 NVSwitches: each of these of one board "
                     "taken for joined with one of the other by 8 NVLinks");
}

void fill_in_nvlinks(Topology& topology, std::uint32_t host) {
  const std::vector<NodeId> gpus = all(topology, NodeKind::gpu, host);
  if (gpus.size() < 2) return;
  if (has_nvlinks(topology, host)) return join_boards(topology, host, gpus);
  const GpuModel* model = gpu_model(topology.nodes[gpus[0]].model);
  if (model == nullptr) {
    note(topology,
         shown(topology, host) + std::to_string(gpus.size()) + " GPUs of an unknown model: no NVLinks are assumed");
    return;
  }
  for (const NodeId gpu : gpus)
    if (topology.nodes[gpu].model != model->name) return;
  const bool board = gpus.size() == 4 || gpus.size() == 8 || gpus.size() == 16;
  if (model->nvlinks > 0 && board) return add_nvlinks(topology, host, gpus, *model);
}

// Nobody puts a fast card behind a slow link: one that is not known has the fastest port that its link carries.
double fastest_port(const Topology& topology, NodeId nic) {
  double fastest = kPortSpeeds[0];
  for (const Link& link : topology.links) {
    if (link.b != nic || link.kind != LinkKind::pci) continue;
    for (const double megabits : kPortSpeeds)
      if (nic_gbytes_per_s(megabits) <= link.gbytes_per_s) fastest = megabits;
  }
  return fastest;
}

void fill_in_speed(Topology& topology, NodeId id) {
  Node& nic = topology.nodes[id];
  if (nic.gbytes_per_s > 0) return;
  double megabits = 0;
  for (const NicModel& model : kNicModels)
    if (nic.model == model.name) megabits = model.megabits_per_s;
  const bool known = megabits > 0;
  if (!known) megabits = fastest_port(topology, id);
  nic.gbytes_per_s = nic_gbytes_per_s(megabits);
  note(topology, nic.name + " without a speed: " + std::to_string(static_cast<int>(megabits / 1000)) + " Gbit/s, as " +
                     (known ? nic.model + " has" : "much as its link of PCI carries"));
}

}  // namespace

std::string model_of(std::uint32_t vendor, std::uint32_t device) {
  if (vendor == 0x10de)
    if (const GpuModel* model = gpu_model(device)) return std::string(model->name);
  for (const NicModel& model : kNicModels)
    if (vendor == model.vendor && device == model.device) return std::string(model.name);
  char text[16] = "";
  if (vendor != 0 || device != 0) std::snprintf(text, sizeof text, "%04x:%04x", vendor, device);
  return text;
}

void fill_in(Topology& topology) {
  for (std::uint32_t host = 0; host < topology.hosts.size(); ++host) fill_in_nvlinks(topology, host);
  for (const NodeId nic : topology.all(NodeKind::nic)) fill_in_speed(topology, nic);
}

Status set_gpu_model(Topology& topology, std::string_view name) {
  const GpuModel* model = gpu_model(name);
  if (model == nullptr)
    return invalid_argument("no GPU is called '" + std::string(name) + "'; there are " + gpu_models());
  for (Node& node : topology.nodes) {
    if (node.kind != NodeKind::gpu) continue;
    node.model = model->name;
    node.sm = model->sm;
  }
  return {};
}

}  // namespace tutti
