#include "src/topology/fill.h"

#include <cstdio>
#include <set>
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
// Names and device ids: the PCI ID repository. Speeds: the fastest port that the vendor sells.
constexpr NicModel kNicModels[] = {
    {0x1d0f, 0xefa0, "EFA", 100'000},           {0x1d0f, 0xefa1, "EFA-2", 100'000},
    {0x1d0f, 0xefa2, "EFA-3", 200'000},         {0x15b3, 0x1017, "ConnectX-5", 100'000},
    {0x15b3, 0x1019, "ConnectX-5-Ex", 100'000}, {0x15b3, 0x101b, "ConnectX-6", 200'000},
    {0x15b3, 0x101d, "ConnectX-6-Dx", 200'000}, {0x15b3, 0x1021, "ConnectX-7", 400'000},
    {0x1af4, 0x1000, "virtio", 10'000},         {0x1af4, 0x1041, "virtio", 10'000},
    {0x15b3, 0x1023, "ConnectX-8", 800'000},
};
constexpr double kPortSpeeds[] = {10'000, 25'000, 50'000, 100'000, 200'000, 400'000, 800'000};  // Mbit/s

constexpr std::string_view kNvswitches = "nvswitches";  // Name of the node that represents all NVSwitches.

// Indexes the topology once in the constructor. A scan per host would be quadratic, because hosts can be as numerous as
// nodes.
class Filler {
 public:
  explicit Filler(Topology& topology)
      : topology_(topology),
        gpus_(topology.by_host(NodeKind::gpu)),
        nvswitches_(topology.by_host(NodeKind::nvswitch)),
        notes_(topology.notes.begin(), topology.notes.end()),
        has_nvlinks_(topology.hosts.size()),
        has_trunks_(topology.hosts.size()),
        pci_gbytes_per_s_(topology.nodes.size()) {
    const auto is_nvswitch = [&](NodeId id) { return topology.nodes[id].kind == NodeKind::nvswitch; };
    for (const Node& node : topology.nodes)
      if (node.name.starts_with(kNvswitches)) names_.emplace(node.host, node.name);
    for (const Link& link : topology.links) {
      const std::uint32_t host = topology.nodes[link.a].host;
      if (link.kind == LinkKind::pci) pci_gbytes_per_s_[link.b] = link.gbytes_per_s;
      if (link.kind != LinkKind::nvlink) continue;
      has_nvlinks_[host] = true;
      if (is_nvswitch(link.a) && is_nvswitch(link.b)) has_trunks_[host] = true;
    }
  }

  void fill_in() {
    for (std::uint32_t host = 0; host < topology_.hosts.size(); ++host) fill_in_nvlinks(host);
    for (const NodeId nic : topology_.all(NodeKind::nic)) fill_in_speed(topology_.nodes[nic], pci_gbytes_per_s_[nic]);
  }

 private:
  // Adds a note once. A topology that was filled in, written and read again already contains it.
  void note(const std::string& text) {
    if (notes_.insert(text).second) topology_.notes.push_back(text);
  }

  // Prefix for notes; empty if the host has no name.
  std::string shown(std::uint32_t host) const {
    const std::string& name = topology_.hosts[host];
    return name.empty() ? name : "host '" + name + "': ";
  }

  // Boards with 8 or 16 GPUs connect all NVLinks to NVSwitches. Boards with 4 GPUs are a full mesh with a third of the
  // links per pair.
  void add_nvlinks(std::uint32_t host, const GpuModel& model) {
    const std::vector<NodeId>& gpus = gpus_[host];
    const double all = nvlink_gbytes_per_s(model.sm, model.nvlinks);
    const double latency = latency_us(LinkKind::nvlink);
    const std::string whose = shown(host) + std::to_string(gpus.size()) + " " + std::string(model.name);
    if (gpus.size() == 4) {
      for (std::size_t a = 0; a < 4; ++a)
        for (std::size_t b = a + 1; b < 4; ++b)
          topology_.connect({gpus[a], gpus[b], LinkKind::nvlink, all / 3, latency, model.nvlinks / 3});
      note(whose + " without NVLinks: assumed that each pair is connected by a third of the NVLinks of a GPU");
      return;
    }
    Node nvswitch;
    nvswitch.kind = NodeKind::nvswitch;
    nvswitch.host = host;
    nvswitch.name = free_name(host);
    const NodeId middle = topology_.add(std::move(nvswitch));
    for (const NodeId gpu : gpus) topology_.connect({gpu, middle, LinkKind::nvlink, all, latency, model.nvlinks});
    note(whose + " without NVLinks: assumed that all NVLinks lead to NVSwitches, shown as one");
  }

  // Returns an unused node name, made unique by apostrophes.
  std::string free_name(std::uint32_t host) const {
    std::string name(kNvswitches);
    while (names_.contains({host, name})) name += "'";
    return name;
  }

  // A DGX-2 has two boards; 8 NVLinks join each NVSwitch to its counterpart on the other board. No driver reports these
  // links. Source: NVIDIA's NVSwitch technical overview, 2018.
  void join_boards(std::uint32_t host) {
    const std::vector<NodeId>&gpus = gpus_[host], &switches = nvswitches_[host];
    if (gpus.size() != 16 || switches.size() != 12 || topology_.nodes[gpus[0]].model != "V100-SXM3-32GB") return;
    if (has_trunks_[host]) return;
    for (std::size_t i = 0; i < 6; ++i)
      topology_.connect({switches[i], switches[i + 6], LinkKind::nvlink, 200, latency_us(LinkKind::nvlink), 8});
    note(shown(host) +
         "16 V100-SXM3 and 12 NVSwitches: assumed to be a DGX-2, in which 8 NVLinks connect each NVSwitch to its "
         "counterpart on the other board");
  }

  void fill_in_nvlinks(std::uint32_t host) {
    const std::vector<NodeId>& gpus = gpus_[host];
    if (gpus.size() < 2) return;
    if (has_nvlinks_[host]) return join_boards(host);
    const GpuModel* model = gpu_model(topology_.nodes[gpus[0]].model);
    if (model == nullptr)
      return note(shown(host) + std::to_string(gpus.size()) + " GPUs of an unknown model: no NVLinks are assumed");
    for (const NodeId gpu : gpus)
      if (topology_.nodes[gpu].model != model->name) return;
    const bool board = gpus.size() == 4 || gpus.size() == 8 || gpus.size() == 16;
    if (model->nvlinks > 0 && board) add_nvlinks(host, *model);
  }

  void fill_in_speed(Node& nic, double pci_gbytes_per_s) {
    if (nic.gbytes_per_s > 0) return;
    double megabits = 0;
    for (const NicModel& model : kNicModels)
      if (nic.model == model.name) megabits = model.megabits_per_s;
    const bool known = megabits > 0;
    if (!known) megabits = fastest_port(pci_gbytes_per_s);
    nic.gbytes_per_s = nic_gbytes_per_s(megabits);
    note(nic.name + " has no speed: assumed to be " + std::to_string(static_cast<int>(megabits / 1000)) + " Gbit/s, " +
         (known ? "the speed of " + nic.model : "the fastest that its PCI link carries"));
  }

  // Speed of an unknown NIC: the fastest standard port that its PCI link can carry. Vendors do not pair a fast port
  // with a slow link.
  static double fastest_port(double pci_gbytes_per_s) {
    double fastest = kPortSpeeds[0];
    for (const double megabits : kPortSpeeds)
      if (nic_gbytes_per_s(megabits) <= pci_gbytes_per_s) fastest = megabits;
    return fastest;
  }

  Topology& topology_;
  const std::vector<std::vector<NodeId>> gpus_, nvswitches_;  // [host]
  std::set<std::string> notes_;
  std::set<std::pair<std::uint32_t, std::string>> names_;  // Existing names that begin with kNvswitches.
  std::vector<bool> has_nvlinks_, has_trunks_;             // [host]; trunks are links between NVSwitches.
  std::vector<double> pci_gbytes_per_s_;                   // [node]: bandwidth of the link to its parent.
};

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

void fill_in(Topology& topology) { Filler(topology).fill_in(); }

Status set_gpu_model(Topology& topology, std::string_view name) {
  const GpuModel* model = gpu_model(name);
  if (model == nullptr)
    return invalid_argument("unknown GPU model '" + std::string(name) + "': must be one of " + gpu_models());
  for (Node& node : topology.nodes) {
    if (node.kind != NodeKind::gpu) continue;
    node.model = model->name;
    node.sm = model->sm;
  }
  return {};
}

}  // namespace tutti
