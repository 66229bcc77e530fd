// A topology while a file is read: names that nobody else has, and what lies between a device and its NUMA domain.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/topology/topology.h"

namespace tutti {

// PCI, as files write it: "0000:A4:00.0" in lower case; without a domain or function they are 0.
std::string normal_bus_id(std::string_view text);

// "GenuineIntel family 6 model 143", as /proc/cpuinfo has these; empty without a vendor.
std::string processor_model(const std::string& vendor, std::uint32_t family, std::uint32_t model);

bool is_bus_id(std::string_view text);  // "0000:a4:00.0", in whole; NCCL has longer ones: "fffffff:ffff:ff.0".

// What a device on PCI is by its class code, of which the last two digits may be missing.
bool is_pci_switch(std::uint64_t pci_class);
bool is_gpu(std::uint64_t pci_class);
bool is_nic(std::uint64_t pci_class);
bool is_nvswitch(std::uint64_t pci_class);

inline constexpr std::uint32_t kUnnumbered = ~0u;  // The index of a GPU before number_gpus().

class TopologyTree {
 public:
  Topology topology;

  // No file is read on where this holds.
  bool full() const { return topology.nodes.size() >= kMaxNodes || topology.hosts.size() >= kMaxNodes; }
  // The host of this name, which is added if it is not there.
  std::uint32_t host(const std::string& name);
  // Adds the node under its name, or that and a number if it is taken on its host.
  NodeId add(Node node);
  bool has(std::uint32_t host, const std::string& name) const { return names_.contains({host, name}); }
  void connect(NodeId a, NodeId b, LinkKind kind, double gbytes_per_s, std::uint32_t width = 1);
  void note(std::string sentence) { topology.notes.push_back(std::move(sentence)); }

  // The GPU or NVSwitch with this bus id on that host; an NVSwitch is added if there is none.
  NodeId nvswitch(std::uint32_t host, const std::string& bus_id);
  const NodeId* on_bus(std::uint32_t host, const std::string& bus_id) const;

  const Link& link_above(NodeId id) const;  // By which it hangs on what is nearer to the processor.
  // One that was made before, of one host, instead of what is here.
  void take(Topology made);

  // GPUs that no file numbered, in the order of their bus ids, as drivers do; names all "gpu<index>".
  void number_gpus();
  // Sockets of a host: each with each other one.
  void connect_sockets(std::uint32_t host, double gbytes_per_s);
  void connect_sockets(const std::vector<double>& gbytes_per_s);  // [host], of all hosts.

 private:
  void connect_all(const std::vector<NodeId>& sockets, double gbytes_per_s);

  std::map<std::string, std::uint32_t> hosts_;
  std::map<std::pair<std::uint32_t, std::string>, NodeId> buses_;
  std::uint32_t nvswitches_ = 0;
  std::map<std::pair<std::uint32_t, std::string>, int> names_;  // How often each was asked for.
};

}  // namespace tutti
