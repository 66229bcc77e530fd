#include "src/topology/presets.h"

#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include "src/topology/figures.h"
#include "src/topology/tree.h"

namespace tutti {
namespace {

// Description of a host with PCI switches below its processors. Sources: NVIDIA user guides and data sheets of the DGX
// systems ("System topology"); NVIDIA architecture papers for NVLinks and NVSwitches.
struct Board {
  std::string_view name;
  const char* gpu;         // Model name.
  const char* processor;   // Spelled as in /proc/cpuinfo.
  std::uint32_t domains;   // NUMA domains with devices.
  std::uint32_t cores;     // Per domain.
  std::uint32_t switches;  // PCI switches per domain.
  std::uint32_t gpus;      // GPUs per PCI switch; each has a network port.
  double pci_gigatransfers;
  double smp_gbytes_per_s;
  double nic_megabits_per_s;
  std::vector<std::uint32_t> nvlinks;  // [NVSwitch]: NVLinks from each GPU.
};

const std::vector<Board>& boards() {
  static const std::vector<Board> all = {
      {"dgx-a100",
       "A100-SXM4-40GB",
       "AuthenticAMD family 23 model 49",
       4,
       32,
       1,
       2,
       16,
       16,
       200'000,
       {2, 2, 2, 2, 2, 2}},
      {"dgx-h100", "H100-SXM5-80GB", "GenuineIntel family 6 model 143", 2, 56, 4, 1, 32, 22, 400'000, {5, 4, 4, 5}},
      {"dgx-h200", "H200-SXM-141GB", "GenuineIntel family 6 model 143", 2, 56, 4, 1, 32, 22, 400'000, {5, 4, 4, 5}},
      {"dgx-b200", "B200-SXM", "GenuineIntel family 6 model 207", 2, 56, 4, 1, 32, 22, 400'000, {9, 9}},
  };
  return all;
}

class Builder {
 public:
  NodeId processor(std::uint32_t host, std::uint32_t index, std::uint32_t cores, const char* model) {
    Node node;
    node.host = host;
    node.index = index;
    node.name = "numa" + std::to_string(index);
    node.model = model;
    node.cpus = std::to_string(index * cores) + "-" + std::to_string((index + 1) * cores - 1);
    return tree_.add(std::move(node));
  }

  NodeId pci_switch(NodeId above, double gigatransfers) {
    Node node = on_bus(NodeKind::pci_switch, above);
    node.name = "pci " + node.bus_id;
    return hang(above, std::move(node), gigatransfers);
  }

  NodeId gpu(NodeId above, std::uint32_t index, const GpuModel& model, double gigatransfers) {
    Node node = on_bus(NodeKind::gpu, above);
    node.index = index;
    node.name = "gpu" + std::to_string(index);
    node.model = model.name;
    node.sm = model.sm;
    node.gpudirect = true;
    return hang(above, std::move(node), gigatransfers);
  }

  NodeId port(NodeId above, std::uint32_t index, double megabits_per_s, double gigatransfers) {
    Node node = on_bus(NodeKind::nic, above);
    node.index = 1;
    node.name = "mlx5_" + std::to_string(index);
    node.gpudirect = true;
    node.gbytes_per_s = nic_gbytes_per_s(megabits_per_s);
    return hang(above, std::move(node), gigatransfers);
  }

  // Adds an NVSwitch to its host. The switches of a rack belong to the first host.
  NodeId nvswitch(std::uint32_t host, std::uint32_t index) {
    Node node;
    node.kind = NodeKind::nvswitch;
    node.host = host;
    node.index = index;
    node.name = "nvswitch" + std::to_string(index);
    return tree_.add(std::move(node));
  }

  TopologyTree& tree() { return tree_; }

 private:
  Node on_bus(NodeKind kind, NodeId above) {
    Node node;
    node.kind = kind;
    node.host = tree_.topology.nodes[above].host;
    std::array<char, 16> id{};
    std::snprintf(id.data(), id.size(), "0000:%02x:00.0", next_bus_[node.host % next_bus_.size()]++ & 0xff);
    node.bus_id = id.data();
    return node;
  }

  NodeId hang(NodeId above, Node node, double gigatransfers) {
    const NodeId id = tree_.add(std::move(node));
    tree_.connect(above, id, LinkKind::pci, pci_gbytes_per_s(gigatransfers, 16), 16);
    return id;
  }

  TopologyTree tree_;
  std::array<unsigned, 18> next_bus_{};  // [host]
};

Topology built(const Board& board) {
  Builder builder;
  const GpuModel& model = *gpu_model(std::string_view(board.gpu));
  const std::uint32_t host = builder.tree().host(std::string(board.name));
  std::vector<NodeId> nvswitches;
  std::uint32_t index = 0;
  std::vector<NodeId> gpus;
  for (std::uint32_t domain = 0; domain < board.domains; ++domain) {
    const NodeId processor = builder.processor(host, domain, board.cores, board.processor);
    for (std::uint32_t i = 0; i < board.switches; ++i) {
      const NodeId above = builder.pci_switch(processor, board.pci_gigatransfers);
      for (std::uint32_t j = 0; j < board.gpus; ++j, ++index) {
        gpus.push_back(builder.gpu(above, index, model, board.pci_gigatransfers));
        builder.port(above, index, board.nic_megabits_per_s, board.pci_gigatransfers);
      }
    }
  }
  for (std::uint32_t i = 0; i < board.nvlinks.size(); ++i) {
    const NodeId middle = builder.nvswitch(host, i);
    for (const NodeId gpu : gpus)
      builder.tree().connect(gpu, middle, LinkKind::nvlink, nvlink_gbytes_per_s(model.sm, board.nvlinks[i]),
                             board.nvlinks[i]);
  }
  builder.tree().connect_sockets(host, board.smp_gbytes_per_s);
  return std::move(builder.tree().topology);
}

// 18 hosts, each with two Grace processors and two GPUs per processor. Each GPU has one NVLink to each of the rack's 18
// NVSwitches. Source: NVIDIA GB200 NVL72 data sheet.
Topology gb200_nvl72() {
  constexpr std::uint32_t kHosts = 18, kSwitches = 18;
  Builder builder;
  const GpuModel& model = *gpu_model(std::string_view("GB200"));
  std::vector<NodeId> gpus;
  for (std::uint32_t host = 0; host < kHosts; ++host) {
    builder.tree().host("tray" + std::to_string(host));
    for (std::uint32_t domain = 0; domain < 2; ++domain) {
      const NodeId processor = builder.processor(host, domain, 72, "Grace");
      for (std::uint32_t i = 0; i < 2; ++i) {
        const NodeId gpu = builder.gpu(processor, domain * 2 + i, model, 64);
        builder.tree().connect(processor, gpu, LinkKind::c2c, c2c_gbytes_per_s(model.sm));
        builder.port(processor, domain * 2 + i, 400'000, 32);
        gpus.push_back(gpu);
      }
    }
    builder.tree().connect_sockets(host, 300);  // NVLink-C2C between the two processors.
  }
  for (std::uint32_t i = 0; i < kSwitches; ++i) {
    const NodeId middle = builder.nvswitch(0, i);
    for (const NodeId gpu : gpus)
      builder.tree().connect(gpu, middle, LinkKind::nvlink, nvlink_gbytes_per_s(model.sm, 1));
  }
  return std::move(builder.tree().topology);
}

}  // namespace

Result<Topology> preset(std::string_view name) {
  for (const Board& board : boards())
    if (board.name == name) return built(board);
  if (name == "gb200-nvl72") return gb200_nvl72();
  return invalid_argument("unknown vendor system '" + std::string(name) + "': must be one of " + presets());
}

std::string presets() {
  std::string all;
  for (const Board& board : boards()) all += std::string(board.name) + ", ";
  return all + "gb200-nvl72";
}

}  // namespace tutti
