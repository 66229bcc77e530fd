#include "algorithms/cost_law.h"

#include <algorithm>
#include <bit>
#include <map>

namespace tutti {
namespace {

struct Hosts {
  explicit Hosts(const Problem& problem) : smallest(problem.ranks), largest(problem.ranks) {
    if (!has_hosts(problem)) return;
    const std::vector<Rank>& sizes = problem.groups[0];
    count = static_cast<Rank>(sizes.size());
    const auto [min, max] = std::minmax_element(sizes.begin(), sizes.end());
    smallest = *min;
    largest = *max;
    aligned = smallest == largest && std::has_single_bit(smallest);
    for (const Rank size : sizes) pairs = std::max(pairs, static_cast<double>(size) * (problem.ranks - size));
  }

  Rank count = 1, smallest, largest;
  bool aligned = true;  // Power-of-two distances stay aligned to hosts.
  double pairs = 0;     // Maximum over hosts of the number of pairs with one rank inside and one outside.
};

Traffic scaled(const Traffic& traffic, double factor) {
  return {.depth = traffic.depth * factor,
          .chain = traffic.chain * factor,
          .stalls = traffic.stalls * factor,
          .sent = traffic.sent * factor,
          .received = traffic.received * factor,
          .messages = traffic.messages * factor,
          .between = traffic.between * factor};
}

CostLaw inside(const Traffic& traffic) {
  CostLaw cost_law;
  cost_law.levels[0] = traffic;
  return cost_law;
}

// Distributes traffic that is equal for all peers over both levels. The longest chain of messages counts as one between
// hosts.
CostLaw shared_out(const Traffic& own, Rank peers, Rank inside, Rank across) {
  CostLaw cost_law;
  cost_law.levels[0] = scaled(own, static_cast<double>(inside) / peers);
  cost_law.levels[1] = scaled(own, static_cast<double>(across) / peers);
  cost_law.levels[0].depth = cost_law.levels[0].chain = cost_law.levels[0].stalls = 0;
  cost_law.levels[1].depth = own.depth;
  cost_law.levels[1].chain = own.chain;
  cost_law.levels[1].stalls = own.stalls;
  return cost_law;
}

}  // namespace

Traffic at_once(double others) {
  return {.depth = 1, .chain = 1, .sent = others, .received = others, .messages = 2 * others};
}

Traffic in_sequence(double rounds, double others) {
  return {
      .depth = rounds, .chain = rounds, .stalls = rounds, .sent = others, .received = others, .messages = 2 * others};
}

CostLaw with_all(const Problem& problem, const Traffic& own) {
  if (problem.ranks == 1) return {};
  const Hosts hosts(problem);
  const Rank peers = problem.ranks - 1;
  CostLaw cost_law =
      hosts.count == 1 ? inside(own) : shared_out(own, peers, hosts.largest - 1, problem.ranks - hosts.smallest);
  cost_law.peers = peers;
  cost_law.levels[1].between = hosts.pairs * std::max(own.sent, own.received) / peers;
  return cost_law;
}

CostLaw with_root(const Problem& problem, const Traffic& total) {
  if (problem.ranks == 1) return {};
  if (!has_hosts(problem)) return inside(total);
  const HostMap map(problem);
  const Rank size = map.size(map.host_of(problem.root)), peers = problem.ranks - 1;
  CostLaw cost_law = shared_out(total, peers, size - 1, problem.ranks - size);
  cost_law.levels[1].between = std::max(cost_law.levels[1].sent, cost_law.levels[1].received);
  return cost_law;
}

CostLaw with_pipeline(const Problem& problem, const Traffic& own, PipelineKind kind) {
  if (problem.ranks == 1) return {};
  const Hosts hosts(problem);
  if (hosts.count == 1) return inside(own);
  const bool ring = kind == PipelineKind::ring;
  const Rank hops = problem.ranks - 1;
  const Rank crossings = std::min(hosts.count, hops);
  CostLaw cost_law;
  cost_law.levels[0] = scaled(own, static_cast<double>(hops - crossings) / hops);
  cost_law.levels[1] = scaled(own, static_cast<double>(crossings) / hops);
  // The first and last rank of a host have one peer on each level.
  for (Traffic& level : std::span(cost_law.levels).first(2)) {
    level.sent = own.sent;
    level.received = own.received;
    level.messages = own.messages;
  }
  if (hosts.largest == 1) cost_law.levels[0] = {};
  else if (ring) cost_law.levels[0].messages = own.messages;
  cost_law.levels[1].between = std::max(own.sent, own.received);
  return cost_law;
}

CostLaw with_distances(const Problem& problem, std::span<const RoundTraffic> rounds, Partners partners) {
  const Hosts hosts(problem);
  CostLaw cost_law;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const bool stays = partners == Partners::by_bits && hosts.aligned && Rank{1} << i < hosts.smallest;
    const bool crosses = hosts.count > 1 && !stays;
    Traffic& level = cost_law.levels[crosses ? 1 : 0];
    const double blocks = std::max(rounds[i].sent, rounds[i].received);
    level.depth += 1;
    level.chain += blocks;
    level.stalls += 1;
    level.sent += rounds[i].sent;
    level.received += rounds[i].received;
    level.messages += rounds[i].messages;
    if (crosses) level.between += blocks * hosts.largest;
    cost_law.longest = std::max(cost_law.longest, blocks);
  }
  return cost_law;
}

std::vector<RoundTraffic> rounds_by_distance(Rank ranks) {
  std::vector<RoundTraffic> rounds;
  for (std::uint64_t distance = 1; distance < ranks; distance *= 2) {
    const auto blocks = static_cast<double>(std::min(distance, ranks - distance));
    // One of the two ranges may wrap around.
    rounds.push_back({.sent = blocks, .received = blocks, .messages = blocks > 1 ? 3.0 : 2.0});
  }
  return rounds;
}

std::vector<RoundTraffic> rounds_by_halves(Rank ranks) {
  std::vector<RoundTraffic> rounds;
  for (Rank members = ranks; members > 1; members /= 2) {
    const Rank kept = members / 2, odd = members % 2;
    rounds.push_back({.sent = static_cast<double>(kept + odd),
                      .received = static_cast<double>(kept * (1 + odd)),
                      .messages = 2.0 + odd});
  }
  // Other ranks still communicate after this rank is alone.
  if (!std::has_single_bit(ranks)) rounds.push_back({.messages = 0});
  std::reverse(rounds.begin(), rounds.end());
  return rounds;
}

CostLaw with_arbitrary_ranks(const Problem& problem, const Traffic& own) {
  if (problem.ranks == 1) return {};
  const Hosts hosts(problem);
  if (hosts.count == 1) return inside(own);
  CostLaw cost_law;
  cost_law.levels[1] = own;
  cost_law.levels[1].between = std::max(own.sent, own.received) * hosts.largest;
  return cost_law;
}

CostLaw with_agents(const Problem& problem, Agents agents, HostRoute route) {
  const HostMap map(problem);
  std::map<Rank, double> hosts_of_size;
  for (Rank host = 0; host < map.hosts(); ++host) hosts_of_size[map.size(host)] += 1;
  const double rounds = map.hosts();
  CostLaw cost_law;
  Traffic &inside = cost_law.levels[0], &across = cost_law.levels[1];
  for (const auto& [size, number] : hosts_of_size) {
    double handled = 1;  // Blocks that a host's first rank handles: its own and those of other hosts.
    for (const auto& [home, homes] : hosts_of_size)
      handled += ((home + size - 1) / size) * (homes - (home == size ? 1 : 0));
    inside.sent = std::max(inside.sent, handled * (size - 1));
    inside.received = std::max(inside.received, problem.ranks - handled);
    across.received = std::max(across.received, handled - 1);
    across.between = std::max({across.between, size * (rounds - 1), static_cast<double>(problem.ranks - size)});
  }
  const bool ring = route == HostRoute::ring;
  across.sent = ring ? std::max(rounds - 1, across.received) : rounds - 1;
  across.depth = across.chain = across.stalls = ring ? rounds - 1 : 1;
  if (problem.ranks > map.hosts()) inside.depth = inside.chain = inside.stalls = rounds;
  if (agents == Agents::sum) {
    // A share is rounded on its way to its host's agent, unless the agent owns it, and once more between hosts.
    const double smallest = hosts_of_size.begin()->first;
    cost_law.rounded = ((problem.ranks - rounds) + (problem.ranks - smallest)) / problem.ranks;
    cost_law.folded = inside.sent + across.sent;
    std::swap(inside.sent, inside.received);
    std::swap(across.sent, across.received);
  } else {
    cost_law.copied = 1;
  }
  inside.messages = inside.sent + inside.received;
  across.messages = across.sent + across.received;
  cost_law.longest = 1;
  return cost_law;
}

CostLaw in_peers_memory(const Problem& problem, double sent, double received) {
  if (problem.ranks == 1) return {};
  const double peers = problem.ranks - 1;
  return with_all(problem, {.depth = 2, .sent = sent, .received = received, .messages = 4 * peers});
}

}  // namespace tutti
