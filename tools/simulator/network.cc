#include "tools/simulator/network.h"

#include <algorithm>
#include <set>

#include "src/topology/figures.h"

namespace tutti::simulator {

std::uint32_t Network::rail_of(Rank rank) const {
  const std::uint32_t rail = rail_of_[rank % unit_ranks_];
  if (moved_.empty()) return rail;
  const auto moved = moved_.find({host_of(rank), rail});
  return moved == moved_.end() ? rail : moved->second;
}

bool Network::is_port(ResourceId id) const {
  return id < leaf_link(0, 0, true) && links_[id % links_.size()].kind == LinkKind::network;
}

double Network::ranks_per_port() const {
  const std::set<std::uint32_t> used(rail_of_.begin(), rail_of_.begin() + ranks_per_host_);
  return static_cast<double>(ranks_per_host_) / static_cast<double>(used.size());
}

bool Network::joined_by_nvlinks(Rank from, Rank to) const {
  if (host_of(from) / domain_hosts_ != host_of(to) / domain_hosts_ || from == to) return false;
  const std::uint32_t island = islands_[from % unit_ranks_];
  return island != kNone && island == islands_[to % unit_ranks_];
}

void Network::add(Route& route, bool out, std::uint32_t repetition, const LocalRoute& local) const {
  for (const std::uint32_t each : local.links) {
    if (out && route.outs < Route::kMax) route.out[route.outs++] = global(repetition, each);
    if (!out && route.ins < Route::kMax) route.in[route.ins++] = global(repetition, each);
  }
  route.latency_us += static_cast<float>(local.latency_us);
}

bool Network::one_island() const {
  if (islands_[0] == kNone) return false;
  return std::all_of(islands_.begin(), islands_.end(), [&](std::uint32_t island) { return island == islands_[0]; });
}

bool Network::switched() const { return one_island() && cluster_.hosts <= domain_hosts_; }

Route Network::over_nvlinks(Rank from, Rank to) const {
  Route route;
  route.links = LinkClass::nvlink;
  route.latency_us = static_cast<float>(2 * latency_us(LinkKind::nvlink));
  route.out[route.outs++] = global(repetition_of(from), nvlinks_[from % unit_ranks_][0]);
  route.in[route.ins++] = global(repetition_of(to), nvlinks_[to % unit_ranks_][1]);
  return route;
}

Route Network::through_switches(Rank rank) const { return over_nvlinks(rank, rank); }

Result<Route> Network::route(Rank from, Rank to) const {
  Route route;
  if (from == to) return route;
  if (joined_by_nvlinks(from, to)) return over_nvlinks(from, to);
  if (host_of(from) != host_of(to)) return over_network(from, to);
  const LocalRoute& local = within_[std::size_t{from % unit_ranks_} * ranks_per_host_ + to % ranks_per_host_];
  if (!local.exists)
    return unsupported("no path connects rank " + std::to_string(from) + " to rank " + std::to_string(to) +
                       " of one host");
  route.links = local.kind;
  add(route, true, repetition_of(from), local);
  return route;
}

// Port r of each host of a pod is on leaf r of the pod. Switches above the leaves connect different leaves.
Result<Route> Network::over_network(Rank from, Rank to) const {
  const std::uint32_t out = rail_of(from), in = rail_of(to);
  if (out == kNone || in == kNone)
    return unsupported("no path connects rank " + std::to_string(from) + " to rank " + std::to_string(to) +
                       ": their hosts have no network ports");
  Route route;
  route.links = LinkClass::network;
  const double hop = latency_us(LinkKind::network);
  const std::uint32_t pods[] = {host_of(from) / cluster_.hosts_per_leaf, host_of(to) / cluster_.hosts_per_leaf};
  add(route, true, repetition_of(from), to_rail_[std::size_t{from % unit_ranks_} * max_rails_ + out][0]);
  const Rail& port = rails_[host_of(from) % unit_hosts_][out];
  const Rail& end = rails_[host_of(to) % unit_hosts_][in];
  add(route, true, repetition_of(from), {{port.out}, LinkClass::network, hop, true});
  const bool same_leaf = cluster_.tiers == 1 || (pods[0] == pods[1] && out == in);
  if (!same_leaf) {
    const std::uint32_t above = cluster_.tiers == 3 && pods[0] != pods[1] ? 4 : 2;  // Links between switches.
    route.latency_us += static_cast<float>(above * hop);
    route.out[route.outs++] = leaf_link(pods[0], out, true);
    route.shared = 1;
    route.in[route.ins++] = leaf_link(pods[1], in, false);
  }
  add(route, false, repetition_of(to), {{end.in}, LinkClass::network, hop, true});
  add(route, false, repetition_of(to), to_rail_[std::size_t{to % unit_ranks_} * max_rails_ + in][1]);
  return route;
}

ResourceId Network::leaf_link(std::uint32_t leaf, std::uint32_t rail, bool up) const {
  return global(cluster_.hosts / unit_hosts_, 0) + (leaf * max_rails_ + rail) * 2 + (up ? 0 : 1);
}

ResourceId Network::resources() const {
  const std::uint32_t leaves = (cluster_.hosts + cluster_.hosts_per_leaf - 1) / cluster_.hosts_per_leaf;
  return leaf_link(leaves, 0, true);
}

Resource Network::resource(ResourceId id) const {
  const ResourceId first_leaf = leaf_link(0, 0, true);
  if (id >= first_leaf) {
    const std::uint32_t rail = (id - first_leaf) / 2 % max_rails_;
    double rate = 0;
    for (const std::vector<Rail>& rails : rails_)
      if (rail < rails.size()) rate = std::max(rate, links_[rails[rail].out].gbytes_per_s);
    const double links = std::min(cluster_.hosts, cluster_.hosts_per_leaf) / cluster_.oversubscription;
    const auto whole = static_cast<std::uint32_t>(std::max(links, 1.0));
    return {LinkKind::network, rate * links / whole, whole};
  }
  const LocalLink& local = links_[id % links_.size()];
  const auto slow = slow_.find(id);
  return {local.kind, local.gbytes_per_s * (slow == slow_.end() ? 1 : slow->second), 1};
}

std::string Network::name(ResourceId id) const {
  const ResourceId first_leaf = leaf_link(0, 0, true);
  if (id >= first_leaf) {
    const std::uint32_t at = (id - first_leaf) / 2;
    return "leaf" + std::to_string(at / max_rails_) + " rail" + std::to_string(at % max_rails_) +
           ((id - first_leaf) % 2 == 0 ? " up" : " down");
  }
  const LocalLink& local = links_[id % links_.size()];
  const auto host = id / static_cast<std::uint32_t>(links_.size()) * unit_hosts_ + local.host;
  return "host" + std::to_string(host) + " " + local.name;
}

Machine Network::machine(const Costs& costs) const {
  Machine machine{.costs = costs, .levels = {}};
  const auto level = [&](const Route& route) {
    Level made{.links = route.links, .latency_us = route.latency_us};
    made.rank_gbytes_per_s = 1e9;
    for (std::size_t i = 0; i < route.outs; ++i) {
      const Resource each = resource(route.out[i]);
      const double rate = each.gbytes_per_s * costs.efficiency[static_cast<std::size_t>(each.kind)];
      made.rank_gbytes_per_s = std::min(made.rank_gbytes_per_s, rate);
    }
    made.member_gbytes_per_s = made.rank_gbytes_per_s;
    return made;
  };
  // With one rank per host, the second rank of an NVLink domain is on the next host.
  const bool has_inside = ranks_per_host_ > 1 || (ranks() > 1 && joined_by_nvlinks(0, 1));
  const auto inside = route(0, has_inside ? 1 : 0);
  if (inside.ok()) machine.levels.push_back(level(inside.value()));
  if (cluster_.hosts < 2) return machine;
  const auto across = route(0, ranks() - ranks_per_host_);
  if (!across.ok()) return machine;
  machine.levels.push_back(level(across.value()));
  if (across.value().links != LinkClass::network) {  // All hosts are in one NVLink domain: each rank has its own links.
    machine.levels.back().member_gbytes_per_s *= ranks_per_host_;
    return machine;
  }
  double host = 0;
  for (const Rail& rail : rails_[0]) host += links_[rail.out].gbytes_per_s;
  host *= hosts_per_nvlink_domain();  // Groups of ranks are NVLink domains.
  machine.levels.back().member_gbytes_per_s = host * costs.efficiency[static_cast<std::size_t>(LinkKind::network)];
  return machine;
}

}  // namespace tutti::simulator
