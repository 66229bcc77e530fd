// Layout of a network, computed for one repetition of its topology.
#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

#include "src/base/nearest_name.h"
#include "src/base/read_number.h"
#include "src/topology/figures.h"
#include "tools/simulator/network.h"

namespace tutti::simulator {
namespace {

constexpr std::uint64_t kMaxRanks = 1U << 24;
constexpr std::uint32_t kMaxRanksPerHost = 1024;  // Paths between all of them are computed.
constexpr std::uint32_t kMaxHostsAlike = 64;      // Maximum hosts of a topology that is repeated.
constexpr std::uint64_t kMaxWays = 1U << 22;      // Maximum paths of all these hosts: some hundred MB.

std::string ways_of(bool out) { return out ? " out" : " in"; }

// Returns a number for each NVSwitch, equal for those that are joined with each other.
std::vector<NodeId> islands_of(const Topology& topology) {
  std::vector<NodeId> island(topology.nodes.size());
  std::iota(island.begin(), island.end(), NodeId{0});
  const auto top = [&](NodeId id) {
    while (island[id] != id) id = island[id] = island[island[id]];
    return id;
  };
  for (const Link& link : topology.links)
    if (link.kind == LinkKind::nvlink &&
        (topology.nodes[link.a].kind == NodeKind::nvswitch || topology.nodes[link.b].kind == NodeKind::nvswitch))
      island[top(link.a)] = top(link.b);
  for (NodeId id = 0; id < island.size(); ++id) island[id] = top(id);
  return island;
}

}  // namespace

Network::Network(Cluster cluster) : cluster_(std::move(cluster)) {}

Result<Network> Network::make(Cluster cluster) {
  TUTTI_CHECK_OK(check(cluster.host));
  Network network(std::move(cluster));
  TUTTI_CHECK_OK(network.place_ranks());
  TUTTI_CHECK_OK(network.check_size());
  network.lay_nvlinks();
  TUTTI_CHECK_OK(network.join_domains());
  TUTTI_CHECK_OK(network.lay_rails());
  network.lay_routes();
  for (const Fault& fault : network.cluster_.faults) TUTTI_CHECK_OK(network.apply(fault));
  std::erase_if(network.cluster_.faults, [](const Fault& fault) { return fault.rate == 1; });
  return network;
}

// Ranks are GPUs. Without GPUs, ranks are spread over the NUMA domains.
Status Network::place_ranks() {
  const Topology& topology = cluster_.host;
  unit_hosts_ = std::min(static_cast<std::uint32_t>(topology.hosts.size()), cluster_.hosts);
  if (unit_hosts_ > kMaxHostsAlike)
    return invalid_argument("a topology of " + std::to_string(unit_hosts_) +
                            " hosts is too large; pass a topology of one host, or of a rack of at most " +
                            std::to_string(kMaxHostsAlike) + " hosts, and the number of hosts with --hosts");
  if (cluster_.ranks_per_host > kMaxRanksPerHost)
    return invalid_argument(std::to_string(cluster_.ranks_per_host) + " ranks per host are too many; the maximum is " +
                            std::to_string(kMaxRanksPerHost));
  if (std::uint64_t{unit_hosts_} * cluster_.ranks_per_host * cluster_.ranks_per_host > kMaxWays)
    return invalid_argument("a topology of " + std::to_string(unit_hosts_) + " hosts with " +
                            std::to_string(cluster_.ranks_per_host) +
                            " ranks each has too many pairs of ranks; pass a topology with fewer hosts, and the number "
                            "of hosts with --hosts");
  for (std::uint32_t host = 0; host < unit_hosts_; ++host) {
    std::vector<NodeId> gpus, domains;
    for (NodeId id = 0; id < topology.nodes.size(); ++id) {
      if (topology.nodes[id].host != host) continue;
      if (topology.nodes[id].kind == NodeKind::gpu) gpus.push_back(id);
      if (topology.nodes[id].kind == NodeKind::numa) domains.push_back(id);
    }
    std::sort(gpus.begin(), gpus.end(),
              [&](NodeId a, NodeId b) { return topology.nodes[a].index < topology.nodes[b].index; });
    const auto found = static_cast<std::uint32_t>(gpus.size());
    const std::string& name = topology.hosts[host];
    if (ranks_per_host_ == 0) ranks_per_host_ = cluster_.ranks_per_host > 0 ? cluster_.ranks_per_host : found;
    if (ranks_per_host_ == 0) return invalid_argument(name + " has no GPUs; pass --ranks-per-host");
    if (found > 0 && ranks_per_host_ > found) {
      return invalid_argument(std::to_string(ranks_per_host_) + " ranks per host, but " + name + " has " +
                              std::to_string(found) + " GPUs");
    }
    if (found == 0 && domains.empty()) return invalid_argument(name + " has neither GPUs nor NUMA domains");
    for (std::uint32_t i = 0; i < ranks_per_host_; ++i)
      nodes_.push_back(found > 0 ? gpus[i] : domains[i * domains.size() / ranks_per_host_]);
  }
  unit_ranks_ = unit_hosts_ * ranks_per_host_;
  return {};
}

Status Network::check_size() const {
  const std::string hosts = std::to_string(cluster_.hosts);
  if (cluster_.hosts == 0) return invalid_argument("the number of hosts is 0; the minimum is 1");
  if (cluster_.hosts % unit_hosts_ != 0)
    return invalid_argument(hosts + " hosts: must be a multiple of the " + std::to_string(unit_hosts_) +
                            " hosts of the topology");
  if (std::uint64_t{cluster_.hosts} * ranks_per_host_ > kMaxRanks)
    return invalid_argument(hosts + " hosts have more than " + std::to_string(kMaxRanks) + " ranks");
  if (cluster_.tiers < 1 || cluster_.tiers > 3)
    return invalid_argument(std::to_string(cluster_.tiers) + " tiers of switches: must be 1 to 3");
  if (!(cluster_.oversubscription >= 1)) return invalid_argument("oversubscription must be at least 1 (1: none)");
  if (cluster_.hosts_per_leaf == 0) return invalid_argument("hosts per leaf switch must be at least 1");
  return {};
}

std::uint32_t Network::link(const LocalLink& made) {
  const auto [found, is_new] =
      link_numbers_.try_emplace({made.host, made.name}, static_cast<std::uint32_t>(links_.size()));
  if (is_new) links_.push_back(made);
  return found->second;
}

void Network::lay_nvlinks() {
  const Topology& topology = cluster_.host;
  const std::vector<NodeId> islands = islands_of(topology);
  for (const NodeId node : nodes_) {
    double rate = 0;
    for (const Link& each : topology.links) {
      if (each.kind != LinkKind::nvlink || (each.a != node && each.b != node)) continue;
      if (topology.nodes[each.a == node ? each.b : each.a].kind == NodeKind::nvswitch) rate += each.gbytes_per_s;
    }
    std::array<std::uint32_t, 2> pair = {kNone, kNone};
    const Node& gpu = topology.nodes[node];
    for (std::size_t i = 0; rate > 0 && i < 2; ++i)
      pair[i] = link({LinkKind::nvlink, rate, gpu.host, gpu.name + " nvlinks" + ways_of(i == 0)});
    nvlinks_.push_back(pair);
    islands_.push_back(rate > 0 ? islands[node] : kNone);
  }
}

// Joins the NVSwitches of each NVLink domain. Without a requested size, the NVLinks of the topology determine the
// domain.
Status Network::join_domains() {
  const std::uint32_t requested = cluster_.hosts_per_nvlink_domain;
  domain_hosts_ = unit_hosts_;
  if (requested == 0) return {};
  if (std::find(islands_.begin(), islands_.end(), kNone) != islands_.end())
    return invalid_argument("an NVLink domain needs GPUs that are connected to NVSwitches, but the GPUs of " +
                            cluster_.host.hosts[0] + " are not");
  domain_hosts_ = requested;
  if (requested > cluster_.hosts || cluster_.hosts % requested != 0)
    return invalid_argument(std::to_string(requested) + " hosts per NVLink domain: must divide the " +
                            std::to_string(cluster_.hosts) + " hosts of the cluster");
  if (domain_hosts_ % unit_hosts_ != 0 && unit_hosts_ % domain_hosts_ != 0)
    return invalid_argument(std::to_string(requested) +
                            " hosts per NVLink domain: must be a multiple or a divisor of the " +
                            std::to_string(unit_hosts_) + " hosts of the topology");
  std::fill(islands_.begin(), islands_.end(), 0);
  return {};
}

// Rate at which all ranks of a host reach ports, each the port with its highest rate.
double Network::rate_to_ports(std::uint32_t host, const Rail& rail) const {
  double sum = 0;
  for (Rank rank = host * ranks_per_host_; rank < (host + 1) * ranks_per_host_; ++rank) {
    double max = 0;
    for (const NodeId nic : rail.nics) max = std::max(max, find_path(cluster_.host, nodes_[rank], nic).gbytes_per_s);
    sum += max;
  }
  return sum;
}

// Gives each rank an equal number of ports. If there are fewer ports than ranks, several ranks share one.
Status Network::lay_rails() {
  const Topology& topology = cluster_.host;
  for (std::uint32_t host = 0; host < unit_hosts_; ++host) {
    std::vector<NodeId> nics;
    for (NodeId id = 0; id < topology.nodes.size(); ++id) {
      const Node& node = topology.nodes[id];
      if (node.kind == NodeKind::nic && node.host == host && !node.down && node.gbytes_per_s > 0) nics.push_back(id);
    }
    if (cluster_.rails > nics.size())
      return invalid_argument(std::to_string(cluster_.rails) + " rails, but " + topology.hosts[host] + " has " +
                              std::to_string(nics.size()) + " network ports that are up");
    if (cluster_.rails > 0) nics.resize(cluster_.rails);
    if (nics.empty() && cluster_.hosts > domain_hosts_)
      return invalid_argument(topology.hosts[host] +
                              " has no network port that is up, so no path leads to other hosts");
    const std::size_t share = cluster_.spread ? nics.size() : nics.size() / ranks_per_host_;
    const std::size_t together = std::max<std::size_t>(share, 1);
    rails_.emplace_back();
    for (std::size_t i = 0; i + together <= nics.size(); i += together) {
      Rail rail;
      rail.nics.assign(nics.begin() + static_cast<std::ptrdiff_t>(i),
                       nics.begin() + static_cast<std::ptrdiff_t>(i + together));
      double rate = 0;
      std::string name;
      for (const NodeId nic : rail.nics) {
        rate += topology.nodes[nic].gbytes_per_s;
        name += (name.empty() ? "" : "+") + topology.nodes[nic].name;
      }
      // If the channels of several ranks share the ports, data that these ranks send at once uses all ports, up to the
      // rate of the ranks' own links.
      if (cluster_.spread && ranks_per_host_ > 1) rate = std::min(rate, rate_to_ports(host, rail));
      rail.out = link({LinkKind::network, rate, host, name + ways_of(true)});
      rail.in = link({LinkKind::network, rate, host, name + ways_of(false)});
      rails_.back().push_back(std::move(rail));
    }
    max_rails_ = std::max(max_rails_, static_cast<std::uint32_t>(rails_.back().size()));
  }
  return {};
}

LinkClass Network::class_of(const NodePath& path) const {
  if (path.kind == PathKind::nvlink) return LinkClass::nvlink;
  const bool memory = std::all_of(path.nodes.begin(), path.nodes.end(), [&](NodeId id) {
    return cluster_.host.nodes[id].kind == NodeKind::numa || cluster_.host.nodes[id].kind == NodeKind::cpu;
  });
  return memory ? LinkClass::memory : LinkClass::pci;
}

// The links of find_path(), one by one; all NVLinks between two GPUs count as one.
Network::LocalRoute Network::local_route(NodeId from, NodeId to) {
  const Topology& topology = cluster_.host;
  const std::uint32_t host = topology.nodes[from].host;
  LocalRoute made{.links = {}, .kind = LinkClass::memory, .latency_us = 0, .exists = true};
  if (from == to) {
    if (topology.nodes[from].kind == NodeKind::numa)
      made.links.push_back(link({LinkKind::memory, kMemoryGbytesPerS, host, topology.nodes[from].name + " memory"}));
    return made;
  }
  const NodePath found = find_path(topology, from, to);
  made.exists = found.kind != PathKind::none;
  made.kind = class_of(found);
  made.latency_us = found.latency_us;
  const auto between = [&](NodeId a, NodeId b) { return topology.nodes[a].name + "-" + topology.nodes[b].name; };
  if (found.kind == PathKind::nvlink) {
    made.links.push_back(link({LinkKind::nvlink, found.gbytes_per_s, host, between(from, to) + " nvlinks"}));
    return made;
  }
  for (std::size_t i = 0; i + 1 < found.nodes.size(); ++i) {
    const NodeId a = found.nodes[i], b = found.nodes[i + 1];
    const Link* widest = nullptr;
    for (const Link& each : topology.links) {
      const bool joins = (each.a == a && each.b == b) || (each.a == b && each.b == a);
      if (joins && each.kind != LinkKind::nvlink && (widest == nullptr || each.gbytes_per_s > widest->gbytes_per_s))
        widest = &each;
    }
    made.links.push_back(link({widest->kind, widest->gbytes_per_s, topology.nodes[a].host, between(a, b)}));
  }
  return made;
}

std::uint32_t Network::nearest_rail(std::uint32_t host, NodeId node) const {
  std::uint32_t best = 0;
  std::optional<NodePath> nearest;
  const std::uint32_t own = static_cast<std::uint32_t>(
      std::find(nodes_.begin() + host * ranks_per_host_, nodes_.begin() + (host + 1) * ranks_per_host_, node) -
      nodes_.begin() - host * ranks_per_host_);
  const auto rails = static_cast<std::uint32_t>(rails_[host].size());
  for (std::uint32_t i = 0; i < rails; ++i) {  // Ranks start with different ports among equally near ones.
    const std::uint32_t rail = (i + own * rails / ranks_per_host_) % rails;
    NodePath found = find_path(cluster_.host, node, rails_[host][rail].nics[0]);
    if (found.kind == PathKind::none) continue;
    if (nearest &&
        (found.kind > nearest->kind || (found.kind == nearest->kind && found.gbytes_per_s <= nearest->gbytes_per_s)))
      continue;
    nearest = std::move(found);
    best = rail;
  }
  return best;
}

// Removes the GPU's own link from paths to several ports if all use it and it is slower than the ports. Each port
// has its own PCI link, which is faster. If channels of several ranks share the ports, they leave by the nearest
// ones, and lay_rails() has counted these ranks' links.
void Network::leave_own_links(NodeId node, const Rail& rail, std::array<LocalRoute, 2>& routes) {
  const double ports = links_[rail.out].gbytes_per_s;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    std::vector<std::uint32_t>& own = routes[i].links;
    if (cluster_.spread && ranks_per_host_ > 1) own.clear();
    for (std::size_t nic = 1; nic < rail.nics.size() && !own.empty(); ++nic) {
      const LocalRoute other = i == 0 ? local_route(node, rail.nics[nic]) : local_route(rail.nics[nic], node);
      std::erase_if(own, [&](std::uint32_t link) {
        return links_[link].gbytes_per_s >= ports ||
               std::find(other.links.begin(), other.links.end(), link) == other.links.end();
      });
    }
  }
}

void Network::lay_routes() {
  for (Rank from = 0; from < unit_ranks_; ++from) {
    const std::uint32_t host = from / ranks_per_host_;
    for (Rank i = 0; i < ranks_per_host_; ++i) {
      const Rank to = host * ranks_per_host_ + i;
      const bool switched = joined_by_nvlinks(from, to);
      within_.push_back(switched || from == to ? LocalRoute{} : local_route(nodes_[from], nodes_[to]));
    }
    rail_of_.push_back(rails_[host].empty() ? kNone : nearest_rail(host, nodes_[from]));
    for (std::uint32_t rail = 0; rail < max_rails_; ++rail) {
      to_rail_.emplace_back();
      if (rail >= rails_[host].size()) continue;
      const NodeId nic = rails_[host][rail].nics[0];
      to_rail_.back() = {local_route(nodes_[from], nic), local_route(nic, nodes_[from])};
      if (rails_[host][rail].nics.size() > 1) leave_own_links(nodes_[from], rails_[host][rail], to_rail_.back());
    }
  }
}

// ---- Faults ----

Status Network::apply(const Fault& fault) {
  const std::string& text = fault.link;
  const std::size_t colon = text.find(':');
  std::uint32_t host = 0;
  const bool named = colon != std::string::npos && text.starts_with("host");
  if (!named || !read_number(std::string_view(text).substr(4, colon - 4), host) || host >= cluster_.hosts)
    return invalid_argument(
        "link '" + text + "' must begin with " +
        (cluster_.hosts == 1 ? "host0" : "a host from host0: to host" + std::to_string(cluster_.hosts - 1)) + ":");
  if (!(fault.rate >= 0 && fault.rate <= 1))
    return invalid_argument("remaining bandwidth of " + text + " must be a fraction from 0 to 1");
  const std::string wanted = text.substr(colon + 1);
  const std::uint32_t local = host % unit_hosts_;
  for (std::uint32_t rail = 0; fault.rate == 0 && rail < rails_[local].size(); ++rail)
    if (links_[rails_[local][rail].out].name == wanted + ways_of(true)) return fail_rail(host, rail, text);
  if (const std::uint32_t rail = joined_rail(local, wanted); rail != kNone) return slow_port(host, rail, fault);
  bool found = false;
  std::vector<std::string_view> known;  // GPUs and ports; links of the PCI tree are named by both of their ends.
  for (std::uint32_t i = 0; i < links_.size(); ++i) {
    if (links_[i].host != local) continue;
    const std::string& name = links_[i].name;
    const std::string_view word = std::string_view(name).substr(0, name.find(' '));
    if (name.find('-') == std::string::npos && (known.empty() || known.back() != word)) known.push_back(word);
    if (name != wanted && !name.starts_with(wanted + " ")) continue;
    if (cluster_.spread && links_[i].kind == LinkKind::pci)
      return unsupported(text + " leads to one of several ports that are simulated together");
    slow_[global(host / unit_hosts_, i)] = fault.rate;
    found = true;
  }
  if (!found)
    return invalid_argument("host" + std::to_string(host) + " has no link '" + wanted + "'" +
                            (known.empty() ? "" : ": " + suggestion(wanted, known)) +
                            "; PCI links are named by both ends (gpu0-pci 0000:00:00.0, see tutti topo)");
  if (fault.rate == 0)
    return invalid_argument(
        text + " has no replacement, so the collective could not complete: use --slow, or --fail with a network port");
  return {};
}

// Returns the rail of several ports that contains this port.
std::uint32_t Network::joined_rail(std::uint32_t local_host, const std::string& port) const {
  const std::vector<Rail>& rails = rails_[local_host];
  for (std::uint32_t rail = 0; rail < rails.size(); ++rail)
    for (const NodeId nic : rails[rail].nics)
      if (rails[rail].nics.size() > 1 && cluster_.host.nodes[nic].name == port) return rail;
  return kNone;
}

// Other ports carry the traffic of a failed one. A slow port keeps its traffic: a call is divided among ports by
// their nominal rates, and ends with the last.
Status Network::slow_port(std::uint32_t host, std::uint32_t rail, const Fault& fault) {
  const std::string prefix = "host" + std::to_string(host) + ":";
  port_left_[prefix + fault.link.substr(fault.link.find(':') + 1)] = fault.rate;
  const Rail& joined = rails_[host % unit_hosts_][rail];
  double working = 0, all = 0, slowest = 1;
  for (const NodeId nic : joined.nics) {
    const Node& node = cluster_.host.nodes[nic];
    const auto found = port_left_.find(prefix + node.name);
    const double left = found == port_left_.end() ? 1 : found->second;
    all += node.gbytes_per_s;
    if (left == 0) continue;
    working += node.gbytes_per_s;
    slowest = std::min(slowest, left);
  }
  if (working == 0) return fail_rail(host, rail, fault.link);
  for (const std::uint32_t each : {joined.out, joined.in})
    slow_[global(host / unit_hosts_, each)] = working * slowest / all;
  return {};
}

Status Network::fail_rail(std::uint32_t host, std::uint32_t rail, const std::string& failed) {
  moved_[{host, rail}] = kNone;
  const std::vector<Rail>& rails = rails_[host % unit_hosts_];
  for (std::uint32_t lost = 0; lost < rails.size(); ++lost) {
    const auto moved = moved_.find({host, lost});
    if (moved == moved_.end()) continue;
    moved->second = kNone;
    for (std::uint32_t i = 1; i < rails.size() && moved->second == kNone; ++i) {
      const auto next = static_cast<std::uint32_t>((lost + i) % rails.size());
      if (!moved_.contains({host, next})) moved->second = next;
    }
    if (moved->second == kNone)
      return invalid_argument(failed + " is the last working port of its host, so its traffic has no other path");
  }
  return {};
}

}  // namespace tutti::simulator
