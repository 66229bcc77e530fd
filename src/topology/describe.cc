#include "src/topology/describe.h"

#include <algorithm>
#include <compare>
#include <cstdio>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "src/base/read_number.h"
#include "src/topology/paths.h"

namespace tutti {

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value >= 100 ? "%.0f" : value >= 10 ? "%.1f" : "%.2g", value);
  return text;
}

std::string describe(const Link& link) {
  std::string text = name(link.kind);
  if (link.kind == LinkKind::pci && link.width > 1) text += " x" + std::to_string(link.width);
  if (link.kind == LinkKind::nvlink && link.width > 1) text = std::to_string(link.width) + " " + text + "s";
  return text + " " + short_number(link.gbytes_per_s) + " GB/s";
}

namespace {

std::string words(const Node& node) {
  std::string text = node.name;
  if (!node.model.empty()) text += ", " + node.model;
  if (node.sm > 0) text += ", sm_" + std::to_string(node.sm);
  if (!node.cpus.empty()) text += ", processors " + node.cpus;
  if (node.down) text += ", down";
  if (node.gbytes_per_s > 0) text += ", " + short_number(node.gbytes_per_s * 8) + " Gbit/s";
  if (!node.bus_id.empty() && node.name.find(node.bus_id) == std::string::npos) text += ", " + node.bus_id;
  return text;
}

// A name split into stem and number: "gpu12" is "gpu" and 12.
struct NumberedName {
  std::string stem;
  std::optional<std::uint32_t> number;

  std::string text() const { return number ? stem + std::to_string(*number) : stem; }
  auto operator<=>(const NumberedName&) const = default;
};

NumberedName numbered(const std::string& name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;  // 0: the name consists of digits only.
  std::uint32_t number = 0;
  // Rejects leading zeros, as in "007".
  const bool same =
      read_number(std::string_view(name).substr(digits), number) && std::to_string(number) == name.substr(digits);
  if (!same) return {name, {}};
  return {name.substr(0, digits), number};
}

bool follows(const NumberedName& one, const NumberedName& next) {
  return one.stem == next.stem && one.number && next.number && *next.number == *one.number + 1;
}

class Tree {
 public:
  explicit Tree(const Topology& topology)
      : topology_(topology), links_of_(topology.nodes.size()), shown_(topology.nodes.size()) {
    for (const Link& link : topology.links) {
      links_of_[link.a].push_back(&link);
      links_of_[link.b].push_back(&link);
    }
  }

  std::string write() {
    for (std::uint32_t host = 0; host < topology_.hosts.size(); ++host) {
      text_ += topology_.hosts[host] + "\n";
      for (NodeId id = 0; id < topology_.nodes.size(); ++id)
        if (topology_.nodes[id].host == host && topology_.nodes[id].kind == NodeKind::numa) write(id, nullptr, 1);
      for (NodeId id = 0; id < topology_.nodes.size(); ++id)
        if (topology_.nodes[id].host == host && !shown_[id]) write(id, nullptr, 1);
    }
    for (const std::string& note : topology_.notes) text_ += "note: " + note + "\n";
    return text_;
  }

 private:
  void write(NodeId id, const Link* above, int depth) {
    shown_[id] = true;
    const Node& node = topology_.nodes[id];
    text_ += std::string(static_cast<std::size_t>(depth) * 2, ' ') + words(node);
    if (above != nullptr) text_ += "; " + describe(*above);
    text_ += across(id) + "\n";
    for (const Link* link : links_of_[id]) {
      const bool below = link->kind == LinkKind::pci || link->kind == LinkKind::memory;
      if (link->a == id && below && !shown_[link->b]) write(link->b, link, depth + 1);
    }
  }

  // Describes links outside the PCI and memory tree: count and peers, with equal links grouped.
  std::string across(NodeId id) const {
    std::map<std::string, std::vector<NodeId>> others;
    for (const Link* link : links_of_[id]) {
      const bool across = link->kind != LinkKind::pci && link->kind != LinkKind::memory;
      if (across) others[describe(*link)].push_back(link->a == id ? link->b : link->a);
    }
    std::string text;
    for (const auto& [how, whom] : others) text += "; " + how + " to " + listed(whom);
    return text;
  }

  // "gpu0, gpu2 ... gpu7 (7)": each name once, in order. The number of links follows where it differs from the number
  // of names shown.
  std::string listed(const std::vector<NodeId>& nodes) const {
    std::set<NumberedName> names;
    std::set<std::uint32_t> hosts;
    for (const NodeId id : nodes) {
      names.insert(numbered(topology_.nodes[id].name));
      hosts.insert(topology_.nodes[id].host);
    }
    std::vector<std::string> parts;
    for (auto first = names.begin(); first != names.end();) {
      auto last = first, next = std::next(first);
      while (next != names.end() && follows(*last, *next)) last = next++;
      const std::ptrdiff_t count = std::distance(first, next);
      if (count > 2) parts.push_back(first->text() + " ... " + last->text());
      for (; count <= 2 && first != next; ++first) parts.push_back(first->text());
      first = next;
    }
    std::string text = parts.front();
    for (std::size_t i = 1; i < parts.size(); ++i) text += (i + 1 < parts.size() ? ", " : " and ") + parts[i];
    if (hosts.size() > 1) text += " of " + std::to_string(hosts.size()) + " hosts";
    return parts.size() == nodes.size() ? text : text + " (" + std::to_string(nodes.size()) + ")";
  }

  const Topology& topology_;
  std::vector<std::vector<const Link*>> links_of_;  // [node]
  std::vector<bool> shown_;
  std::string text_;
};

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

}  // namespace

std::string describe(const Topology& topology, const NodePath& found, NodeId from, NodeId to) {
  if (found.kind == PathKind::same) return "X";
  std::string text = name(found.kind);
  if (found.kind == PathKind::none) return text;
  double carried = found.gbytes_per_s;
  for (const NodeId end : {from, to})
    if (topology.nodes[end].gbytes_per_s > 0) carried = std::min(carried, topology.nodes[end].gbytes_per_s);
  return text + " " + short_number(carried);
}

std::string describe(const Topology& topology) { return Tree(topology).write(); }

std::string describe_distances(const Topology& topology) {
  std::string text;
  for (std::uint32_t host = 0; host < topology.hosts.size(); ++host) {
    std::vector<NodeId> devices;
    for (const NodeKind kind : {NodeKind::gpu, NodeKind::nic})
      for (const NodeId id : topology.all(kind))
        if (topology.nodes[id].host == host) devices.push_back(id);
    if (devices.size() < 2) continue;
    std::stable_sort(devices.begin(), devices.end(), [&](NodeId a, NodeId b) {
      const Node &one = topology.nodes[a], &other = topology.nodes[b];
      return one.kind == other.kind && one.kind == NodeKind::gpu && one.index < other.index;
    });
    std::size_t width = 10;
    for (const NodeId id : devices) width = std::max(width, topology.nodes[id].name.size() + 2);
    text += padded(topology.hosts[host], width);
    for (const NodeId to : devices) text += padded(topology.nodes[to].name, width);
    for (const NodeId from : devices) {
      text += "\n" + padded(topology.nodes[from].name, width);
      const std::vector<NodePath> found = find_paths(topology, from, devices);
      for (std::size_t i = 0; i < devices.size(); ++i)
        text += padded(describe(topology, found[i], from, devices[i]), width);
    }
    text += "\n";
  }
  if (!text.empty())
    text +=
        "NV: NVLink. PIX: at most one PCI switch; PXB: several; PHB: the PCI root of a processor; SYS: between "
        "sockets. GB/s per direction, at most the speed of the port.\n";
  return text;
}

}  // namespace tutti
