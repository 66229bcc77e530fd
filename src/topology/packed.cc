// Binary form: a version, then counts; each text is preceded by its length. Numbers are in native byte order, since all
// ranks of a communicator run on compatible processors.
#include <cstring>
#include <type_traits>
#include <utility>

#include "src/topology/merged.h"

namespace tutti {
namespace {

constexpr std::uint32_t kVersion = 1;

class Packer {
 public:
  template <typename Number>
  void number(Number value) {
    static_assert(std::is_arithmetic_v<Number>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& value) {
    number(static_cast<std::uint32_t>(value.size()));
    bytes_ += value;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// After the first failed read, all further reads return zero values, and whole() returns false.
class Unpacker {
 public:
  explicit Unpacker(const std::string& bytes) : bytes_(bytes) {}

  template <typename Number>
  Number number() {
    Number value{};
    if (!has(sizeof value)) return value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string text() {
    const auto size = number<std::uint32_t>();
    if (!has(size)) return "";
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  // Reads a count of items of at least `min` bytes each. Returns 0 if the remaining bytes cannot hold them.
  std::uint32_t count(std::size_t min) {
    const auto many = number<std::uint32_t>();
    return has(many * min) ? many : 0;
  }
  bool whole() const { return sound_ && at_ == bytes_.size(); }

 private:
  bool has(std::size_t more) {
    sound_ = sound_ && more <= bytes_.size() - at_;
    return sound_;
  }
  const std::string& bytes_;
  std::size_t at_ = 0;
  bool sound_ = true;
};

void pack(Packer& packer, const Node& node) {
  packer.number(static_cast<std::uint8_t>(node.kind));
  packer.number(node.host);
  packer.text(node.name);
  packer.text(node.bus_id);
  packer.text(node.model);
  packer.number(node.index);
  packer.number(node.sm);
  packer.number(static_cast<std::uint8_t>(node.gpudirect));
  packer.number(node.gbytes_per_s);
  packer.number(static_cast<std::uint8_t>(node.down));
  packer.text(node.cpus);
}
constexpr std::size_t kMinNode = 4 * 4 + 3 + 3 * 4 + 8;

// Replaces an unknown kind by a valid one and clears `known`, because check() indexes arrays by kind.
Node unpack_node(Unpacker& unpacker, bool& known) {
  Node node;
  const auto kind = unpacker.number<std::uint8_t>();
  known = known && kind <= static_cast<std::uint8_t>(NodeKind::network);
  node.kind = known ? static_cast<NodeKind>(kind) : NodeKind::numa;
  node.host = unpacker.number<std::uint32_t>();
  node.name = unpacker.text();
  node.bus_id = unpacker.text();
  node.model = unpacker.text();
  node.index = unpacker.number<std::uint32_t>();
  node.sm = unpacker.number<std::uint32_t>();
  node.gpudirect = unpacker.number<std::uint8_t>() != 0;
  node.gbytes_per_s = unpacker.number<double>();
  node.down = unpacker.number<std::uint8_t>() != 0;
  node.cpus = unpacker.text();
  return node;
}

void pack(Packer& packer, const Link& link) {
  packer.number(link.a);
  packer.number(link.b);
  packer.number(static_cast<std::uint8_t>(link.kind));
  packer.number(link.gbytes_per_s);
  packer.number(link.latency_us);
  packer.number(link.width);
}
constexpr std::size_t kMinLink = 3 * 4 + 1 + 2 * 8;

Link unpack_link(Unpacker& unpacker, bool& known) {
  Link link;
  link.a = unpacker.number<NodeId>();
  link.b = unpacker.number<NodeId>();
  const auto kind = unpacker.number<std::uint8_t>();
  known = known && kind <= static_cast<std::uint8_t>(LinkKind::network);
  link.kind = known ? static_cast<LinkKind>(kind) : LinkKind::pci;
  link.gbytes_per_s = unpacker.number<double>();
  link.latency_us = unpacker.number<double>();
  link.width = unpacker.number<std::uint32_t>();
  return link;
}

}  // namespace

bool fits_broadcast(const Topology& topology) {
  return topology.nodes.size() <= kMaxNodesSent && topology.links.size() <= kMaxLinksSent;
}

std::string packed(const Topology& topology) {
  Packer packer;
  packer.number(kVersion);
  for (const std::size_t count :
       {topology.hosts.size(), topology.nodes.size(), topology.links.size(), topology.notes.size()})
    packer.number(static_cast<std::uint32_t>(count));
  for (const std::string& host : topology.hosts) packer.text(host);
  for (const Node& node : topology.nodes) pack(packer, node);
  for (const Link& link : topology.links) pack(packer, link);
  for (const std::string& note : topology.notes) packer.text(note);
  return packer.take();
}

Result<Topology> unpacked(const std::string& bytes, const std::string& origin) {
  Unpacker unpacker(bytes);
  const auto version = unpacker.number<std::uint32_t>();
  if (version != kVersion)
    return invalid_argument(origin + ": version " + std::to_string(version) +
                            " of a packed topology is not supported; the supported version is " +
                            std::to_string(kVersion));
  const std::uint32_t hosts = unpacker.count(sizeof(std::uint32_t)), nodes = unpacker.count(kMinNode),
                      links = unpacker.count(kMinLink), notes = unpacker.count(sizeof(std::uint32_t));
  if (nodes > kMaxNodesSent || links > kMaxLinksSent)
    return invalid_argument(origin + ": " + std::to_string(nodes) + " nodes and " + std::to_string(links) +
                            " links; at most " + std::to_string(kMaxNodesSent) + " and " +
                            std::to_string(kMaxLinksSent));
  Topology topology;
  bool known = true;
  for (std::uint32_t i = 0; i < hosts; ++i) topology.hosts.push_back(unpacker.text());
  for (std::uint32_t i = 0; i < nodes; ++i) topology.nodes.push_back(unpack_node(unpacker, known));
  for (std::uint32_t i = 0; i < links; ++i) topology.links.push_back(unpack_link(unpacker, known));
  for (std::uint32_t i = 0; i < notes; ++i) topology.notes.push_back(unpacker.text());
  if (!unpacker.whole() || !known) return invalid_argument(origin + ": truncated, or not a packed topology");
  return checked(std::move(topology), origin);
}

}  // namespace tutti
