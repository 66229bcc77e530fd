// Our JSON format: {"format": "tutti topology", "version": 1, "hosts": [{"name": "a", "nodes": [{...}]}], "links":
// [{"from": "a/numa0", "to": "a/gpu0", ...}], "notes": []}. The fields are those of Node and Link. Fields with their
// default value may be omitted.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "src/topology/formats.h"
#include "src/topology/formats/xml.h"

namespace tutti {
namespace {

using Json = nlohmann::json;             // Sorted objects: fast lookup. ordered_json searches linearly.
using Written = nlohmann::ordered_json;  // Keeps the order of insertion.

constexpr const char* kFormat = "tutti topology";

class JsonReader {
 public:
  explicit JsonReader(std::string origin) : origin_(std::move(origin)) {}

  Result<Topology> read(const Json& json) {
    TUTTI_CHECK_OK(only(json, "the topology", {"format", "version", "hosts", "links", "notes"}));
    if (TUTTI_TRY(text(json, "the topology", "format")) != kFormat)
      return error_at("the format is not \"" + std::string(kFormat) + "\"");
    if (TUTTI_TRY(whole(json, "the topology", "version", 1)) != 1) return error_at("the version is not 1");
    for (const Json& host : TUTTI_TRY(list(json, "the topology", "hosts"))) TUTTI_CHECK_OK(read_host(host));
    for (const Json& link : TUTTI_TRY(list(json, "the topology", "links"))) TUTTI_CHECK_OK(read_link(link));
    for (const Json& note : TUTTI_TRY(list(json, "the topology", "notes"))) {
      if (!note.is_string()) return error_at("a note is not a string");
      topology_.notes.push_back(note.get<std::string>());
    }
    return std::move(topology_);
  }

 private:
  Status error_at(const std::string& what) const { return invalid_argument(origin_ + ": " + what); }

  Status only(const Json& at, const std::string& what, std::initializer_list<std::string_view> names) const {
    if (!at.is_object()) return error_at(what + " is not an object");
    for (const auto& [key, value] : at.items())
      if (std::find(names.begin(), names.end(), key) == names.end())
        return error_at(what + " has the unknown key \"" + key + "\"");
    return {};
  }

  Result<std::string> text(const Json& at, const std::string& what, const char* key) const {
    if (!at.contains(key)) return std::string();
    if (!at[key].is_string()) return error_at("\"" + std::string(key) + "\" of " + what + " is not a string");
    return at[key].get<std::string>();
  }

  Result<double> number(const Json& at, const std::string& what, const char* key, double otherwise) const {
    if (!at.contains(key)) return otherwise;
    const bool good = at[key].is_number() && std::isfinite(at[key].get<double>()) && at[key].get<double>() >= 0;
    if (!good) return error_at("\"" + std::string(key) + "\" of " + what + " is not a number >= 0");
    return at[key].get<double>();
  }

  Result<std::uint32_t> whole(const Json& at, const std::string& what, const char* key, std::uint32_t otherwise) const {
    const double value = TUTTI_TRY(number(at, what, key, otherwise));
    if (value != std::floor(value) || value > std::numeric_limits<std::uint32_t>::max())
      return error_at("\"" + std::string(key) + "\" of " + what + " is not an integer");
    return static_cast<std::uint32_t>(value);
  }

  Result<bool> flag(const Json& at, const std::string& what, const char* key) const {
    if (!at.contains(key)) return false;
    if (!at[key].is_boolean())
      return error_at("\"" + std::string(key) + "\" of " + what + " is neither true nor false");
    return at[key].get<bool>();
  }

  Result<Json> list(const Json& at, const std::string& what, const char* key) const {
    if (!at.contains(key)) return Json::array();
    if (!at[key].is_array()) return error_at("\"" + std::string(key) + "\" of " + what + " is not an array");
    return at[key];
  }

  Status read_host(const Json& json) {
    TUTTI_CHECK_OK(only(json, "a host", {"name", "nodes"}));
    const std::string name = TUTTI_TRY(text(json, "a host", "name"));
    if (name.empty()) return error_at("a host has no name");
    if (topology_.hosts.size() >= kMaxNodes) return error_at("too many hosts");
    if (!hosts_.insert(name).second) return error_at("duplicate host '" + name + "'");
    topology_.hosts.push_back(name);
    for (const Json& node : TUTTI_TRY(list(json, "host '" + name + "'", "nodes"))) TUTTI_CHECK_OK(read_node(node));
    return {};
  }

  Status read_node(const Json& json) {
    if (topology_.nodes.size() >= kMaxNodes) return error_at("too many nodes");
    TUTTI_CHECK_OK(
        only(json, "a node",
             {"kind", "name", "bus_id", "model", "index", "sm", "gpudirect", "gbytes_per_s", "down", "cpus"}));
    Node node;
    node.host = static_cast<std::uint32_t>(topology_.hosts.size() - 1);
    node.name = TUTTI_TRY(text(json, "a node", "name"));
    const std::string what = "node '" + node.name + "'";
    Result<NodeKind> kind = parse_node_kind(TUTTI_TRY(text(json, what, "kind")));
    if (!kind.ok()) return error_at(what + ": " + std::move(kind).status().message());
    node.kind = kind.value();
    node.bus_id = TUTTI_TRY(text(json, what, "bus_id"));
    node.model = TUTTI_TRY(text(json, what, "model"));
    node.index = TUTTI_TRY(whole(json, what, "index", 0));
    node.sm = TUTTI_TRY(whole(json, what, "sm", 0));
    node.gbytes_per_s = TUTTI_TRY(number(json, what, "gbytes_per_s", 0));
    node.cpus = TUTTI_TRY(text(json, what, "cpus"));
    node.gpudirect = TUTTI_TRY(flag(json, what, "gpudirect"));
    node.down = TUTTI_TRY(flag(json, what, "down"));
    const std::string path = topology_.hosts.back() + "/" + node.name;
    if (!paths_.emplace(path, topology_.add(std::move(node))).second) return error_at("duplicate node '" + path + "'");
    return {};
  }

  Result<NodeId> end_of(const Json& json, const char* key) const {
    const std::string path = TUTTI_TRY(text(json, "a link", key));
    const auto found = paths_.find(path);
    if (found == paths_.end())
      return error_at("a link leads " + std::string(key) + " '" + path +
                      "', which is not a \"<host>/<node>\" of this file");
    return found->second;
  }

  Status read_link(const Json& json) {
    TUTTI_CHECK_OK(only(json, "a link", {"from", "to", "kind", "gbytes_per_s", "latency_us", "width"}));
    Link link;
    link.a = TUTTI_TRY(end_of(json, "from"));
    link.b = TUTTI_TRY(end_of(json, "to"));
    const std::string what =
        "the link from " + json["from"].get<std::string>() + " to " + json["to"].get<std::string>();
    Result<LinkKind> kind = parse_link_kind(TUTTI_TRY(text(json, what, "kind")));
    if (!kind.ok()) return error_at(what + ": " + std::move(kind).status().message());
    link.kind = kind.value();
    link.gbytes_per_s = TUTTI_TRY(number(json, what, "gbytes_per_s", 0));
    link.latency_us = TUTTI_TRY(number(json, what, "latency_us", 0));
    link.width = TUTTI_TRY(whole(json, what, "width", 1));
    topology_.connect(link);
    return {};
  }

  std::string origin_;
  Topology topology_;
  std::set<std::string> hosts_;
  std::map<std::string, NodeId, std::less<>> paths_;  // Key: "<host>/<node>".
};

Written json_of(const Node& node) {
  Written json = {{"kind", name(node.kind)}, {"name", node.name}};
  if (!node.bus_id.empty()) json["bus_id"] = node.bus_id;
  if (!node.model.empty()) json["model"] = node.model;
  if (node.index != 0) json["index"] = node.index;
  if (node.sm != 0) json["sm"] = node.sm;
  if (node.gpudirect) json["gpudirect"] = true;
  if (node.gbytes_per_s != 0) json["gbytes_per_s"] = node.gbytes_per_s;
  if (node.down) json["down"] = true;
  if (!node.cpus.empty()) json["cpus"] = node.cpus;
  return json;
}

// Rejects deep nesting before parsing, because recursive parsers and destructors would overflow the stack.
bool too_deep(std::string_view text) {
  std::uint32_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') ++i;
    else if (text[i] == '"') quoted = !quoted;
    else if (!quoted && (text[i] == '[' || text[i] == '{') && ++depth > kMaxTopologyDepth) return true;
    else if (!quoted && (text[i] == ']' || text[i] == '}')) --depth;
  }
  return false;
}

}  // namespace

Result<Topology> read_topology_json(std::string_view text, const std::string& origin) {
  if (text.size() > kMaxTopologyBytes) return invalid_argument(origin + ": longer than 64 MiB");
  if (too_deep(text)) return invalid_argument(origin + ": lists and objects are nested more than 64 levels deep");
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& problem) {  // what() contains line and column.
    return invalid_argument(origin + ": not JSON: " + problem.what());
  }
  return checked(TUTTI_TRY(JsonReader(origin).read(json)), origin);
}

Result<std::string> write_topology_json(const Topology& topology) {
  Written hosts = Written::array();
  for (const std::string& host : topology.hosts) hosts.push_back({{"name", host}, {"nodes", Written::array()}});
  for (const Node& node : topology.nodes) hosts[node.host]["nodes"].push_back(json_of(node));
  const auto path = [&](NodeId id) { return topology.hosts[topology.nodes[id].host] + "/" + topology.nodes[id].name; };
  Written links = Written::array();
  for (const Link& link : topology.links) {
    links.push_back({{"from", path(link.a)},
                     {"to", path(link.b)},
                     {"kind", name(link.kind)},
                     {"gbytes_per_s", link.gbytes_per_s},
                     {"latency_us", link.latency_us},
                     {"width", link.width}});
  }
  const Written json = {
      {"format", kFormat}, {"version", 1}, {"hosts", hosts}, {"links", links}, {"notes", topology.notes}};
  return json.dump(1, ' ', false, Written::error_handler_t::replace) + "\n";
}

}  // namespace tutti
