#include <algorithm>
#include <cmath>
#include <cstdio>
#include <pugixml.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "src/base/cpu_list.h"
#include "src/topology/figures.h"
#include "src/topology/formats.h"
#include "src/topology/tree.h"

namespace tutti {
namespace {

struct Generation {
  double gigatransfers;
  const char* text;
};
constexpr Generation kGenerations[] = {{2.5, "2.5 GT/s PCIe"}, {5, "5.0 GT/s PCIe"},   {8, "8.0 GT/s PCIe"},
                                       {16, "16.0 GT/s PCIe"}, {32, "32.0 GT/s PCIe"}, {64, "64.0 GT/s PCIe"}};

void set_speed(pugi::xml_node pci, const Link& link) {
  // A link of unknown width is stored as one lane with the full bandwidth; try all widths then.
  const std::vector<std::uint32_t> widths =
      link.width > 1 ? std::vector{link.width} : std::vector<std::uint32_t>{1, 2, 4, 8, 16};
  const Generation* best = nullptr;
  std::uint32_t best_width = 0;
  double best_error = 0;
  for (const std::uint32_t width : widths) {
    for (const Generation& generation : kGenerations) {
      const double error = std::abs(pci_gbytes_per_s(generation.gigatransfers, width) - link.gbytes_per_s);
      if (best != nullptr && error >= best_error) continue;
      best = &generation;
      best_width = width;
      best_error = error;
    }
  }
  pci.append_attribute("link_speed") = best->text;
  pci.append_attribute("link_width") = best_width;
}

// CPU architecture guessed from the model name. NCCL requires the attribute.
const char* arch_of(const std::string& model) {
  for (const char* name : {"arm64", "ARM", "Grace"})
    if (model.find(name) != std::string::npos) return "arm64";
  for (const char* name : {"ppc64", "POWER", "IBM"})
    if (model.find(name) != std::string::npos) return "ppc64";
  return "x86_64";
}

// Placeholder bus id for a switch that is not on PCI.
std::string stand_in_bus_id(NodeId id) {
  char text[32];
  std::snprintf(text, sizeof text, "ffff:%02x:%02x.0", id >> 8 & 0xff, id & 0xff);
  return text;
}

class Writer {
 public:
  explicit Writer(const Topology& topology) : topology_(topology) {}

  Result<std::string> write() {
    pugi::xml_node system = document_.append_child("system");
    system.append_attribute("version") = 1;
    for (const NodeId numa : topology_.all(NodeKind::numa)) TUTTI_CHECK_OK(write_cpu(system, numa));
    std::ostringstream text;
    document_.save(text, "  ", pugi::format_default | pugi::format_no_declaration);
    return text.str();
  }

 private:
  Status write_cpu(pugi::xml_node system, NodeId id) {
    const Node& numa = topology_.nodes[id];
    pugi::xml_node cpu = system.append_child("cpu");
    const std::string& host = topology_.hosts[numa.host];
    if (topology_.hosts.size() > 1)
      cpu.append_attribute("host_hash") = (host.starts_with("host ") ? host.substr(5) : host).c_str();
    cpu.append_attribute("numaid") = numa.index;
    cpu.append_attribute("affinity") = TUTTI_TRY(mask_of_cpus(numa.cpus)).c_str();
    cpu.append_attribute("arch") = arch_of(numa.model);
    char vendor[64];
    unsigned family = 0, model = 0;
    if (std::sscanf(numa.model.c_str(), "%63s family %u model %u", vendor, &family, &model) == 3) {
      cpu.append_attribute("vendor") = vendor;
      cpu.append_attribute("familyid") = family;
      cpu.append_attribute("modelid") = model;
    }
    write_below(cpu, id);
    return {};
  }

  // PCI links point away from the processor.
  void write_below(pugi::xml_node parent, NodeId above) {
    for (const Link& link : topology_.links) {
      if (link.a != above || link.kind != LinkKind::pci) continue;
      const Node& node = topology_.nodes[link.b];
      if (node.kind == NodeKind::nic) {
        write_net(nic_of(parent, node, link), node);
      } else if (node.kind == NodeKind::gpu) {
        write_gpu(write_pci(parent, node, link, "0x030200"), link.b);
      } else if (node.kind == NodeKind::pci_switch) {
        write_below(write_pci(parent, node, link, "0x060400"), link.b);
      }
    }
  }

  static pugi::xml_node write_pci(pugi::xml_node parent, const Node& node, const Link& link, const char* pci_class) {
    pugi::xml_node pci = parent.append_child("pci");
    pci.append_attribute("busid") = node.bus_id.c_str();
    pci.append_attribute("class") = pci_class;
    set_speed(pci, link);
    return pci;
  }

  // Ports of one NIC share a <nic> element.
  static pugi::xml_node nic_of(pugi::xml_node parent, const Node& node, const Link& link) {
    if (node.bus_id.empty()) return parent.append_child("nic");
    const pugi::xml_node card = parent.find_child_by_attribute("pci", "busid", node.bus_id.c_str());
    return card ? card.child("nic") : write_pci(parent, node, link, "0x020000").append_child("nic");
  }

  static void write_net(pugi::xml_node nic, const Node& node) {
    pugi::xml_node net = nic.append_child("net");
    net.append_attribute("name") = node.name.c_str();
    net.append_attribute("speed") = static_cast<unsigned>(std::lround(node.gbytes_per_s * 8000));
    net.append_attribute("port") = node.index;
    net.append_attribute("latency") = "0.000000";
    net.append_attribute("guid") = "0x0";
    net.append_attribute("maxconn") = 65536;
    net.append_attribute("gdr") = node.gpudirect ? 1 : 0;
  }

  void write_gpu(pugi::xml_node pci, NodeId id) {
    const Node& node = topology_.nodes[id];
    pugi::xml_node gpu = pci.append_child("gpu");
    // Unnumbered: the driver does not expose it.
    if (node.index != kUnnumbered) gpu.append_attribute("dev") = node.index;
    gpu.append_attribute("sm") = node.sm;
    gpu.append_attribute("gdr") = node.gpudirect ? 1 : 0;
    for (const Link& link : topology_.links) {
      if (link.a != id && link.b != id) continue;
      const Node& other = topology_.nodes[link.a == id ? link.b : link.a];
      if (link.kind == LinkKind::c2c) {
        pugi::xml_node c2c = gpu.append_child("c2c");
        c2c.append_attribute("bw") = static_cast<unsigned>(std::lround(link.gbytes_per_s * 1000 / link.width));
        c2c.append_attribute("count") = link.width;
      }
      if (link.kind != LinkKind::nvlink) continue;
      pugi::xml_node nvlink = gpu.append_child("nvlink");
      const bool direct = other.kind == NodeKind::gpu, processor = other.kind == NodeKind::numa;
      const std::string target = other.bus_id.empty() ? stand_in_bus_id(link.a == id ? link.b : link.a) : other.bus_id;
      nvlink.append_attribute("target") = target.c_str();
      nvlink.append_attribute("count") = link.width;
      nvlink.append_attribute("tclass") = direct ? "0x030200" : processor ? "0x068001" : "0x068000";
    }
  }

  const Topology& topology_;
  pugi::xml_document document_;
};

}  // namespace

Result<std::string> write_nccl_xml(const Topology& topology) { return Writer(topology).write(); }

}  // namespace tutti
