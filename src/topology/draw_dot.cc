#include "src/topology/describe.h"
#include "src/topology/draw.h"

namespace tutti {
namespace {

const char* shape_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::gpu: return "box, style=filled, fillcolor=\"#c6e5b3\"";
    case NodeKind::nvswitch: return "diamond, style=filled, fillcolor=\"#e2f2d9\"";
    case NodeKind::nic: return "box, style=filled, fillcolor=\"#b9d7f0\"";
    case NodeKind::network: return "ellipse, style=filled, fillcolor=\"#dcebf8\"";
    case NodeKind::numa:
    case NodeKind::cpu: return "box, style=\"rounded,filled\", fillcolor=\"#f6e3b4\"";
    case NodeKind::pci_switch: return "diamond";
  }
  return "box";
}

std::string quoted(const std::string& text) {
  std::string safe = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe + "\"";
}

// Ring hops; the only directed edges of the graph.
std::string arrows(const DrawnRing& ring, std::size_t channel) {
  std::string text;
  for (std::size_t i = 0; i < ring.hops.size(); ++i) {
    const bool slowest = i == ring.slowest;
    const std::string label = "channel " + std::to_string(channel) + ": " + ring.hops[i];
    text += "  n" + std::to_string(ring.trail[i]) + " -- n" + std::to_string(ring.trail[(i + 1) % ring.trail.size()]) +
            " [dir=forward, constraint=false, style=bold, color=\"" + (slowest ? "#cc0000" : "#7a3fa0") +
            "\", label=" + quoted(slowest ? label + ", slowest" : label) + "];\n";
  }
  return text;
}

}  // namespace

std::string draw_dot(const Topology& topology, const std::vector<DrawnRing>& rings) {
  std::string text =
      "graph topology {\n  layout=dot; rankdir=TB; node [fontname=\"sans-serif\", fontsize=10];\n"
      "  edge [fontname=\"sans-serif\", fontsize=8];\n";
  for (std::uint32_t host = 0; host < topology.hosts.size(); ++host) {
    text += "  subgraph cluster_" + std::to_string(host) + " {\n    label=" + quoted(topology.hosts[host]) + ";\n";
    for (NodeId id = 0; id < topology.nodes.size(); ++id) {
      const Node& node = topology.nodes[id];
      if (node.host != host) continue;
      const std::string label = node.name + (node.model.empty() ? "" : "\n" + node.model);
      text += "    n" + std::to_string(id) + " [label=" + quoted(label) + ", shape=" + shape_of(node.kind) + "];\n";
    }
    text += "  }\n";
  }
  for (const Link& link : topology.links) {
    text += "  n" + std::to_string(link.a) + " -- n" + std::to_string(link.b) + " [label=" + quoted(describe(link)) +
            (link.kind == LinkKind::nvlink ? ", color=\"#4d8c1f\", penwidth=2, constraint=false" : "") + "];\n";
  }
  for (std::size_t i = 0; i < rings.size(); ++i) text += arrows(rings[i], i);
  return text + "}\n";
}

}  // namespace tutti
