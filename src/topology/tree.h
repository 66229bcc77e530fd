// A topology under construction: makes names unique and finds the devices between a node and its NUMA domain.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/topology/topology.h"

namespace tutti {

// Normalises a PCI address: lower case; a missing domain or function becomes 0. Example: "0000:A4:00.0".
std::string normal_bus_id(std::string_view text);

// "GenuineIntel family 6 model 143", with values as in /proc/cpuinfo. Empty if `vendor` is empty.
std::string processor_model(const std::string& vendor, std::uint32_t family, std::uint32_t model);

bool is_bus_id(std::string_view text);  // Full form "0000:a4:00.0". NCCL also writes longer ones: "fffffff:ffff:ff.0".

// Device type by 24-bit PCI class code; the last two hexadecimal digits are ignored.
bool is_pci_switch(std::uint64_t pci_class);
bool is_gpu(std::uint64_t pci_class);
bool is_nic(std::uint64_t pci_class);
bool is_nvswitch(std::uint64_t pci_class);

inline constexpr std::uint32_t kUnnumbered = ~0u;  // Index of a GPU before number_gpus().

class TopologyTree {
 public:
  Topology topology;

  // True at the size limit; readers must stop then.
  bool full() const { return topology.nodes.size() >= kMaxNodes || topology.hosts.size() >= kMaxNodes; }
  // Returns the host with this name and adds it if necessary.
  std::uint32_t host(const std::string& name);
  // Adds the node. If its name is taken on its host, a number is appended.
  NodeId add(Node node);
  bool has(std::uint32_t host, const std::string& name) const { return names_.contains({host, name}); }
  void connect(NodeId a, NodeId b, LinkKind kind, double gbytes_per_s, std::uint32_t width = 1);
  void note(std::string sentence) { topology.notes.push_back(std::move(sentence)); }

  // Returns the GPU or NVSwitch with this bus id; adds an NVSwitch if there is none.
  NodeId nvswitch(std::uint32_t host, const std::string& bus_id);
  const NodeId* on_bus(std::uint32_t host, const std::string& bus_id) const;

  const Link& link_above(NodeId id) const;  // Link to the parent in the PCI or memory tree.
  // Replaces the contents by a complete topology of one host.
  void take(Topology made);

  // Numbers the GPUs without an index in bus id order, as drivers do. Renames all GPUs to "gpu<index>".
  void number_gpus();
  // Connects all NUMA domains of a host pairwise.
  void connect_sockets(std::uint32_t host, double gbytes_per_s);
  void connect_sockets(const std::vector<double>& gbytes_per_s);  // [host], for all hosts.

 private:
  void connect_all(const std::vector<NodeId>& sockets, double gbytes_per_s);

  std::map<std::string, std::uint32_t> hosts_;
  std::map<std::pair<std::uint32_t, std::string>, NodeId> buses_;
  std::uint32_t nvswitches_ = 0;
  std::map<std::pair<std::uint32_t, std::string>, int> names_;  // Number of requests for each name.
};

}  // namespace tutti
