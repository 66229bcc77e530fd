// Reader of NCCL's topology files: <system><cpu><pci>...<gpu><nvlink/></gpu> or <nic><net/></nic>. Vendor files omit
// elements that NCCL discovers on the machine. The class of a <pci> then determines whether it is a GPU or a NIC.
#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/base/cpu_list.h"
#include "src/topology/figures.h"
#include "src/topology/fill.h"
#include "src/topology/formats.h"
#include "src/topology/formats/xml.h"
#include "src/topology/tree.h"

namespace tutti {
namespace {

constexpr double kUnknownGigatransfers = 8;  // NCCL's default for unknown links: generation 3 x16.
constexpr std::uint32_t kUnknownLanes = 16;
constexpr std::uint64_t kNvLinkBridge = 0x068001;

struct Pci {
  double gigatransfers = 0;
  std::uint32_t lanes = 0;
  double gbytes_per_s() const { return pci_gbytes_per_s(gigatransfers, lanes); }
};

struct NvLink {
  NodeId gpu, socket;
  pugi::xml_node at;
};

class Reader {
 public:
  explicit Reader(const Xml& xml) : xml_(xml) {}

  Result<Topology> read() {
    const pugi::xml_node system = xml_.root();
    if (std::string_view(system.name()) != "system")
      return xml_.error_at(system, "the root element of a topology of NCCL is <system>");
    TUTTI_TRY(xml_.whole(system, "version", 1, 1));
    for (const pugi::xml_node cpu : system.children("cpu")) TUTTI_CHECK_OK(read_cpu(cpu));
    if (tree_.topology.nodes.empty()) return xml_.error_at(system, "has no <cpu>");
    tree_.number_gpus();
    for (const NvLink& link : nvlinks_) TUTTI_CHECK_OK(connect(link));
    tree_.connect_sockets(smp_);
    return std::move(tree_.topology);
  }

 private:
  Status read_cpu(const pugi::xml_node& cpu) {
    Node numa;
    numa.kind = NodeKind::numa;
    const std::string hash = cpu.attribute("host_hash").value();
    numa.host = tree_.host(hash.empty() ? "host" : "host " + hash);
    if (tree_.full()) return xml_.error_at(cpu, "too many nodes or hosts");
    numa.index = TUTTI_TRY(domain_of(cpu, numa.host));
    numa.name = "numa" + std::to_string(numa.index);
    const auto family = static_cast<std::uint32_t>(TUTTI_TRY(xml_.whole(cpu, "familyid", 0, 1u << 16)));
    const auto model = static_cast<std::uint32_t>(TUTTI_TRY(xml_.whole(cpu, "modelid", 0, 1u << 16)));
    const std::string vendor = cpu.attribute("vendor").value();
    numa.model = processor_model(vendor, family, model);
    const std::string_view arch = cpu.attribute("arch").value();
    if (numa.model.empty() && arch != "x86_64") numa.model = arch;
    Result<std::string> cpus = cpus_of_mask(cpu.attribute("affinity").value());
    if (!cpus.ok()) return xml_.error_at(cpu, std::move(cpus).status().message());
    numa.cpus = std::move(cpus).value();
    if (tree_.has(numa.host, numa.name))
      return xml_.error_at(cpu, "numaid " + std::to_string(numa.index) + " is listed twice");
    smp_.resize(tree_.topology.hosts.size());
    smp_[numa.host] = smp_gbytes_per_s(vendor, family, model);
    socket_ = tree_.add(std::move(numa));
    return read_children(cpu, socket_, 1);
  }

  // Reads numaid. NCCL writes -1 (also as 16 bits: 65535) for an unknown domain; the next free number is used then.
  Result<std::uint32_t> domain_of(const pugi::xml_node& cpu, std::uint32_t host) {
    const std::string_view reported = cpu.attribute("numaid").value();
    if (reported != "-1" && reported != "65535" && reported != "0xffff")
      return static_cast<std::uint32_t>(TUTTI_TRY(xml_.whole(cpu, "numaid", 0, kMaxDomains - 1)));
    std::uint32_t index = 0;
    while (tree_.has(host, "numa" + std::to_string(index))) ++index;
    if (index >= kMaxDomains) return xml_.error_at(cpu, "too many NUMA domains");
    tree_.note("a processor without the number of its NUMA domain: assumed to be " + std::to_string(index));
    return index;
  }

  Status read_children(const pugi::xml_node& at, NodeId parent, std::uint32_t depth) {
    if (depth > kMaxTopologyDepth) return xml_.error_at(at, "<pci> elements are nested too deeply");
    for (const pugi::xml_node child : at.children()) {
      if (tree_.full()) return xml_.error_at(child, "too many nodes");
      const std::string_view what = child.name();
      if (what == "pci") TUTTI_CHECK_OK(read_pci(child, parent, depth));
      if (what == "nic") TUTTI_CHECK_OK(read_nic(child, parent, nullptr));
    }
    return {};
  }

  Result<Pci> speed_of(const pugi::xml_node& pci) const {
    Pci speed;
    const std::string text = pci.attribute("link_speed").value();  // "16 GT/s", "32.0 GT/s PCIe" or "".
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), speed.gigatransfers);
    const bool has_unit = error == std::errc() && std::string_view(text).substr(end - text.data()).starts_with(" GT/s");
    if (!text.empty() && text != "Unknown" && !(has_unit && speed.gigatransfers > 0 && speed.gigatransfers <= 1024))
      return xml_.error_at(pci, "link_speed=\"" + text.substr(0, 64) + "\" is not a speed such as \"16 GT/s\"");
    if (!has_unit) speed.gigatransfers = kUnknownGigatransfers;
    speed.lanes = static_cast<std::uint32_t>(TUTTI_TRY(xml_.whole(pci, "link_width", 0, 32)));
    if (speed.lanes == 0) speed.lanes = kUnknownLanes;
    return speed;
  }

  Status read_pci(const pugi::xml_node& pci, NodeId parent, std::uint32_t depth) {
    const std::uint64_t pci_class = TUTTI_TRY(xml_.whole(pci, "class", 0, 0xffffff));
    const Pci speed = TUTTI_TRY(speed_of(pci));
    Node node;
    node.host = tree_.topology.nodes[parent].host;
    if (*pci.attribute("busid").value() == 0) return xml_.error_at(pci, "has no busid");
    node.bus_id = TUTTI_TRY(xml_.bus_id(pci, "busid"));
    if (tree_.on_bus(node.host, node.bus_id) != nullptr)
      return xml_.error_at(pci, "duplicate busid=\"" + node.bus_id + "\"");
    if (pci.child("nic")) return read_nic(pci.child("nic"), parent, &speed, node.bus_id);
    const auto device = static_cast<std::uint32_t>(TUTTI_TRY(xml_.whole(pci, "device", 0, 0xffff)));
    const auto vendor = static_cast<std::uint32_t>(TUTTI_TRY(xml_.whole(pci, "vendor", 0, 0xffff)));
    node.model = model_of(vendor, device);
    if (pci.child("gpu") || is_gpu(pci_class)) return add_gpu(pci, std::move(node), parent, speed);
    if (is_nic(pci_class)) {
      node.kind = NodeKind::nic;
      node.name = "nic " + node.bus_id;
      node.index = 1;
      return attach(std::move(node), parent, speed);
    }
    if (!is_pci_switch(pci_class)) return {};  // Other devices, such as disks.
    node.kind = NodeKind::pci_switch;
    node.name = "pci " + node.bus_id;
    const NodeId id = tree_.add(std::move(node));
    const Pci above = unless_emulated(pci, speed);
    tree_.connect(parent, id, LinkKind::pci, above.gbytes_per_s(), above.lanes);
    return read_children(pci, id, depth + 1);
  }

  // Virtual machines show emulated 2.5 GT/s x1 bridges above faster devices. The real link is unknown, so the speed of
  // the fastest child is used.
  Pci unless_emulated(const pugi::xml_node& pci, const Pci& above) {
    Pci fastest;
    for (const pugi::xml_node child : pci.children("pci")) {
      Result<Pci> below = speed_of(child);
      if (below.ok() && below.value().gbytes_per_s() > fastest.gbytes_per_s()) fastest = below.value();
    }
    if (above.gigatransfers > 2.5 || above.lanes > 1 || fastest.gbytes_per_s() <= above.gbytes_per_s()) return above;
    tree_.note("pci " + normal_bus_id(pci.attribute("busid").value()) +
               " is slower than the devices behind it: treated as a bridge of a virtual machine");
    return fastest;
  }

  Status attach(Node node, NodeId parent, const Pci& speed) {
    tree_.connect(parent, tree_.add(std::move(node)), LinkKind::pci, speed.gbytes_per_s(), speed.lanes);
    return {};
  }

  Status add_gpu(const pugi::xml_node& pci, Node node, NodeId parent, const Pci& speed) {
    const pugi::xml_node gpu = pci.child("gpu");
    const GpuModel* model = gpu_model(node.model);
    node.kind = NodeKind::gpu;
    node.index = static_cast<std::uint32_t>(TUTTI_TRY(xml_.whole(gpu, "dev", kUnnumbered, 4095)));
    node.name = "gpu " + node.bus_id;
    const std::uint32_t known_sm = model == nullptr ? 0 : model->sm;
    node.sm = static_cast<std::uint32_t>(TUTTI_TRY(xml_.whole(gpu, "sm", known_sm, 999)));
    node.gpudirect = TUTTI_TRY(xml_.whole(gpu, "gdr", 0, 1)) == 1;
    const NodeId id = tree_.add(std::move(node));
    tree_.connect(parent, id, LinkKind::pci, speed.gbytes_per_s(), speed.lanes);
    for (const pugi::xml_node link : gpu.children("nvlink")) nvlinks_.push_back({id, socket_, link});
    for (const pugi::xml_node c2c : gpu.children("c2c")) {
      const double megabytes = TUTTI_TRY(xml_.number(c2c, "bw", 0, 1e9));
      const auto count = static_cast<std::uint32_t>(TUTTI_TRY(xml_.whole(c2c, "count", 1, 1024)));
      if (megabytes * count <= 0) return xml_.error_at(c2c, "bw times count is 0");
      tree_.connect(socket_, id, LinkKind::c2c, megabytes * count / 1000, count);
    }
    return {};
  }

  // A NIC; each of its ports becomes a node.
  Status read_nic(const pugi::xml_node& nic, NodeId parent, const Pci* speed, const std::string& bus_id = "") {
    for (const pugi::xml_node net : nic.children("net")) {
      if (tree_.full()) return xml_.error_at(net, "too many nodes");
      Node node;
      node.kind = NodeKind::nic;
      node.host = tree_.topology.nodes[parent].host;
      node.name = net.attribute("name").value();
      if (node.name.empty()) return xml_.error_at(net, "has no name");
      node.bus_id = bus_id;
      node.index = static_cast<std::uint32_t>(TUTTI_TRY(xml_.whole(net, "port", 1, 1u << 20)));
      node.gbytes_per_s = nic_gbytes_per_s(TUTTI_TRY(xml_.number(net, "speed", 0, 1e9)));
      node.gpudirect = TUTTI_TRY(xml_.whole(net, "gdr", 0, 1)) == 1;
      const double own = node.gbytes_per_s > 0 ? node.gbytes_per_s : pci_gbytes_per_s(kUnknownGigatransfers, 16);
      const NodeId id = tree_.add(std::move(node));
      tree_.connect(parent, id, LinkKind::pci, speed == nullptr ? own : speed->gbytes_per_s(),
                    speed == nullptr ? kUnknownLanes : speed->lanes);
    }
    return {};
  }

  Status connect(const NvLink& link) {
    const std::uint32_t host = tree_.topology.nodes[link.gpu].host;
    const auto count = static_cast<std::uint32_t>(TUTTI_TRY(xml_.whole(link.at, "count", 1, 64)));
    const std::uint64_t target_class = TUTTI_TRY(xml_.whole(link.at, "tclass", 0, 0xffffff));
    if (count == 0) return xml_.error_at(link.at, "count is 0");
    const std::string target = TUTTI_TRY(xml_.bus_id(link.at, "target"));
    NodeId other = 0;
    if (is_nvswitch(target_class) && target_class != kNvLinkBridge) {
      other = tree_.nvswitch(host, target);
    } else if (target_class == kNvLinkBridge) {  // NVLink to a POWER processor.
      other = link.socket;
    } else if (const NodeId* gpu = tree_.on_bus(host, target)) {
      other = *gpu;
    } else {
      return xml_.error_at(link.at, "leads to busid=\"" + target + "\", but no GPU has this busid");
    }
    if (other == link.gpu) {
      tree_.note(tree_.topology.nodes[other].name + " has NVLinks to itself: ignored");
      return {};
    }
    const auto seen = seen_by_.try_emplace({std::min(other, link.gpu), std::max(other, link.gpu)}, link.gpu).first;
    if (seen->second != link.gpu) return {};  // The other end reported this link already.
    if (tree_.full()) return xml_.error_at(link.at, "too many nodes");
    tree_.connect(link.gpu, other, LinkKind::nvlink, nvlink_gbytes_per_s(tree_.topology.nodes[link.gpu].sm, count),
                  count);
    return {};
  }

  const Xml& xml_;
  TopologyTree tree_;
  std::vector<NvLink> nvlinks_;
  std::map<std::pair<NodeId, NodeId>, NodeId> seen_by_;
  std::vector<double> smp_;  // [host]
  NodeId socket_ = 0;        // Processor whose children are being read.
};

}  // namespace

Result<Topology> read_nccl_xml(std::string_view text, const std::string& origin) {
  const Xml xml = TUTTI_TRY(Xml::parse(text, origin));
  return checked(TUTTI_TRY(Reader(xml).read()), origin);
}

}  // namespace tutti
