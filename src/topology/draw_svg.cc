#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

#include "src/topology/describe.h"
#include "src/topology/draw.h"
#include "src/topology/plain_text.h"

namespace tutti {
namespace {

constexpr double kBoxWidth = 92, kBoxHeight = 34, kGap = 14, kRow = 78, kMargin = 24;
constexpr double kRingRow = 34, kLabel = 70, kChip = 50, kStep = 106;  // Geometry of the ring rows.
constexpr std::size_t kMaxRows = 12;
constexpr const char* kRing = "#7a3fa0";
constexpr const char* kSlowest = "#cc0000";

struct Box {
  double x = 0, y = 0;  // Centre.
  bool shown = false;
};

const char* color_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::gpu: return "#c6e5b3";
    case NodeKind::nvswitch: return "#e2f2d9";
    case NodeKind::nic: return "#b9d7f0";
    case NodeKind::network: return "#dcebf8";
    case NodeKind::numa:
    case NodeKind::cpu: return "#f6e3b4";
    case NodeKind::pci_switch: return "#eeeeee";
  }
  return "#ffffff";
}

const char* color_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink:
    case LinkKind::c2c: return "#4d8c1f";
    case LinkKind::network: return "#2f6fa8";
    case LinkKind::smp: return "#c08a1c";
    case LinkKind::memory:
    case LinkKind::pci: return "#888888";
  }
  return "#000000";
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&') safe += "&amp;";
    else if (c == '<') safe += "&lt;";
    else if (c == '>') safe += "&gt;";
    else if (c == '"') safe += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20) safe += c;
  }
  return safe;
}

[[gnu::format(printf, 1, 2)]] std::string print(const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

class Picture {
 public:
  Picture(const Topology& topology, const std::vector<DrawnRing>& rings)
      : topology_(topology), rings_(rings), boxes_(topology.nodes.size()), below_(topology.nodes.size()) {
    for (const Link& link : topology.links) {
      const bool hangs = link.kind == LinkKind::pci || link.kind == LinkKind::memory;
      if (hangs && topology.nodes[link.b].kind != NodeKind::nvswitch) below_[link.a].push_back(link.b);
    }
    for (std::vector<NodeId>& below : below_) std::erase_if(below, [this](NodeId id) { return is_empty(id); });
  }

  std::string draw() {
    double right = kMargin, bottom = 0;
    std::string frames;
    for (std::uint32_t host = 0; host < topology_.hosts.size(); ++host) {
      const double left = right;
      double lowest = kMargin + 40;
      right = place_host(host, left + kGap, lowest) + kGap;
      bottom = std::max(bottom, lowest);
      frames +=
          print(
              "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" fill=\"none\" stroke=\"#bbb\" rx=\"8\"/>"
              "<text x=\"%.0f\" y=\"%.0f\" font-weight=\"bold\">",
              left, kMargin, right - left, lowest + kBoxHeight - kMargin + kGap, left + 10, kMargin + 18) +
          escaped(topology_.hosts[host]) + "</text>\n";
      right += kMargin;
    }
    const double rows = bottom + kBoxHeight + kGap + kMargin;
    bottom = rows + (rings_.empty() ? 0 : kMargin + kRingRow * static_cast<double>(std::min(rings_.size(), kMaxRows)));
    for (const DrawnRing& ring : rings_)
      right = std::max(right, kMargin + kLabel + static_cast<double>(ring.trail.size()) * kStep + kChip + kMargin);
    std::string text = print(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        right, bottom);
    text += frames;
    for (const Link& link : topology_.links) text += line(link);
    if (!rings_.empty()) text += arcs(rings_.front());
    for (NodeId id = 0; id < topology_.nodes.size(); ++id) text += box(id);
    for (std::size_t i = 0; i < std::min(rings_.size(), kMaxRows); ++i)
      text += row(i, rows + kRingRow * static_cast<double>(i));
    return text + "</svg>\n";
  }

 private:
  // True for PCI switches that lead to NVSwitches only, which are drawn without their PCI links.
  bool is_empty(NodeId id) const {
    const std::vector<NodeId>& below = below_[id];
    return topology_.nodes[id].kind == NodeKind::pci_switch &&
           std::all_of(below.begin(), below.end(), [this](NodeId child) { return is_empty(child); });
  }
  // Skips PCI switches with a single child.
  NodeId first_reporting(NodeId id) const {
    while (topology_.nodes[id].kind == NodeKind::pci_switch && below_[id].size() == 1) id = below_[id].front();
    return id;
  }
  bool shows(NodeId id) const { return topology_.nodes[id].kind != NodeKind::pci_switch || below_[id].size() > 1; }

  // Places all boxes of a host and returns the right edge. `lowest` becomes the largest y.
  double place_host(std::uint32_t host, double left, double& lowest) {
    double right = left;
    for (NodeId id = 0; id < topology_.nodes.size(); ++id)
      if (topology_.nodes[id].host == host && topology_.nodes[id].kind == NodeKind::numa)
        right = place(id, right, kMargin + 50, lowest);
    std::vector<NodeId> others;
    for (NodeId id = 0; id < topology_.nodes.size(); ++id)
      if (topology_.nodes[id].host == host && !boxes_[id].shown && shows(id)) others.push_back(id);
    std::sort(others.begin(), others.end(),
              [this](NodeId a, NodeId b) { return topology_.nodes[a].bus_id < topology_.nodes[b].bus_id; });
    if (others.empty()) return std::max(right, left + kBoxWidth);
    right = std::max(right, left + static_cast<double>(others.size()) * (kBoxWidth + kGap));
    lowest += 1.6 * kRow;
    const double step = (right - left) / static_cast<double>(others.size());
    for (std::size_t i = 0; i < others.size(); ++i)
      boxes_[others[i]] = {left + (static_cast<double>(i) + 0.5) * step, lowest, true};
    return right;
  }

  double place(NodeId id, double left, double y, double& lowest) {
    lowest = std::max(lowest, y);
    double right = left;
    for (const NodeId child : below_[id]) {
      const NodeId shown = first_reporting(child);
      if (!boxes_[shown].shown) right = place(shown, right, y + kRow, lowest);
    }
    if (right == left) right = left + kBoxWidth + kGap;
    boxes_[id] = {(left + right - kGap) / 2, y, true};
    return right;
  }

  std::string line(const Link& link) const {
    const NodeId to = first_reporting(link.b);
    const Box &a = boxes_[link.a], &b = boxes_[to];
    if (!a.shown || !b.shown) return "";
    const double width = std::clamp(std::log2(link.gbytes_per_s + 1) / 2, 0.6, 5.0);
    const std::string look = print("\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" stroke-opacity=\"0.75\">",
                                   color_of(link.kind), width);
    const std::string title =
        "<title>" + escaped(topology_.nodes[link.a].name + " - " + topology_.nodes[to].name + ": " + describe(link)) +
        "</title></path>\n";
    const bool level = std::abs(a.y - b.y) < 1;
    const double bend = level ? std::min(16 + std::abs(a.x - b.x) / 12, 44.0) : 0;
    const double side = link.kind == LinkKind::smp ? -1 : 1;
    const double from = a.y + (level ? side : b.y > a.y ? 1 : -1) * kBoxHeight / 2;
    const double end = b.y + (level ? side : b.y > a.y ? -1 : 1) * kBoxHeight / 2;
    return print("<path d=\"M%.1f %.1f Q%.1f %.1f %.1f %.1f", a.x, from, (a.x + b.x) / 2,
                 (from + end) / 2 + side * bend, b.x, end) +
           look + title;
  }

  std::string box(NodeId id) const {
    if (!boxes_[id].shown) return "";
    const Node& node = topology_.nodes[id];
    const double x = boxes_[id].x - kBoxWidth / 2, y = boxes_[id].y - kBoxHeight / 2;
    const bool switches = node.kind == NodeKind::pci_switch || node.kind == NodeKind::nvswitch;
    const bool on_bus = switches && !node.bus_id.empty();
    const std::string first = on_bus ? name(node.kind) : std::string(beginning_of(node.name, 16));
    const std::string second = node.gbytes_per_s > 0 ? short_number(node.gbytes_per_s * 8) + " Gbit/s"
                               : on_bus              ? node.bus_id
                               : node.cpus.empty()   ? node.model
                                                     : node.cpus;
    const std::string rest = node.bus_id + (node.cpus.empty() ? "" : " processors " + node.cpus);
    return print("<g><rect x=\"%.1f\" y=\"%.1f\" width=\"%.0f\" height=\"%.0f\" rx=\"4\" fill=\"%s\" stroke=\"%s\"/>",
                 x, y, kBoxWidth, kBoxHeight, color_of(node.kind), node.down ? "#c00" : "#777") +
           "<title>" + escaped(node.name + " " + node.model + " " + rest) + "</title>" +
           print("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", boxes_[id].x, y + 14) + escaped(first) +
           "</text>" +
           print("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"9\">", boxes_[id].x, y + 27) +
           escaped(std::string(beginning_of(second, 18))) + "</text></g>\n";
  }

  // Arrows of a ring, drawn from box to box.
  std::string arcs(const DrawnRing& ring) const {
    std::string text;
    for (std::size_t i = 0; i < ring.hops.size(); ++i) {
      const Box &a = boxes_[ring.trail[i]], &b = boxes_[ring.trail[(i + 1) % ring.trail.size()]];
      if (!a.shown || !b.shown) continue;
      const double side = b.x > a.x ? 1 : -1, top = kBoxHeight / 2;
      const double height = std::min(18 + std::abs(b.x - a.x) / 9, 60.0);
      text += arrow({a.x + side * 12, a.y - top, true}, {b.x - side * 12, b.y - top, true}, height, i == ring.slowest);
    }
    return text;
  }

  static std::string arrow(const Box& from, const Box& to, double height, bool slowest) {
    const char* color = slowest ? kSlowest : kRing;
    const double x = (from.x + to.x) / 2, y = std::min(from.y, to.y) - height;
    const double length = std::hypot(to.x - x, to.y - y), dx = (to.x - x) / length, dy = (to.y - y) / length;
    return print("<path d=\"M%.1f %.1f Q%.1f %.1f %.1f %.1f\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\"/>",
                 from.x, from.y, x, y, to.x, to.y, color, slowest ? 3.0 : 1.8) +
           print("<path d=\"M%.1f %.1f L%.1f %.1f L%.1f %.1f Z\" fill=\"%s\"/>\n", to.x, to.y, to.x - 7 * dx - 3.5 * dy,
                 to.y - 7 * dy + 3.5 * dx, to.x - 7 * dx + 3.5 * dy, to.y - 7 * dy - 3.5 * dx, color);
  }

  // One ring as a row: its nodes in order, and the label of each hop.
  std::string row(std::size_t channel, double y) const {
    if (channel + 1 == kMaxRows && rings_.size() > kMaxRows)
      return print("<text x=\"%.0f\" y=\"%.1f\">and %zu more channels</text>\n", kMargin, y + 4,
                   rings_.size() - kMaxRows + 1);
    const DrawnRing& ring = rings_[channel];
    std::string text =
        print("<text x=\"%.0f\" y=\"%.1f\" font-weight=\"bold\">channel %zu</text>", kMargin, y + 4, channel);
    for (std::size_t i = 0; i <= ring.hops.size(); ++i) {
      const double x = kMargin + kLabel + static_cast<double>(i) * kStep;
      const Node& node = topology_.nodes[ring.trail[i % ring.trail.size()]];
      text += print("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.0f\" height=\"20\" rx=\"4\" fill=\"%s\" stroke=\"#777\"%s/>",
                    x, y - 10, kChip, color_of(node.kind), i == ring.hops.size() ? " fill-opacity=\"0.4\"" : "") +
              print("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"10\">", x + kChip / 2, y + 4) +
              escaped(std::string(beginning_of(node.name, 8))) + "</text>";
      if (i == ring.hops.size()) break;
      const bool slowest = i == ring.slowest;
      text += arrow({x + kChip, y, true}, {x + kStep, y, true}, 0, slowest) +
              print("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"9\" fill=\"%s\">",
                    x + (kChip + kStep) / 2, y - 4, slowest ? kSlowest : kRing) +
              escaped(ring.hops[i]) + "</text>";
    }
    return text + "\n";
  }

  const Topology& topology_;
  const std::vector<DrawnRing>& rings_;
  std::vector<Box> boxes_;                  // [node]
  std::vector<std::vector<NodeId>> below_;  // [node]
};

}  // namespace

std::string draw_svg(const Topology& topology, const std::vector<DrawnRing>& rings) {
  return Picture(topology, rings).draw();
}

}  // namespace tutti
