// Reduce-scatter by hosts: the blocks of a host are summed by the rank at their owner's position, and only sums are
// sent between hosts. There are k rounds. A host's link carries (k-1)/k S per direction, instead of g times as much.
// Latency: 2 k alpha.
//   hierarchical  In round d, hosts sum for the d-th host after them, so no two send to the same one. Sums need no
//                 memory, since they are sent directly. Source: the hierarchical all-gather of this catalogue in
//                 reverse.
//   host_ring     The sum of a block passes all hosts in turn, each of which adds its own, and ends at the owner.
//                 A rank sends to one rank of the next host only. Source: ring reduce-scatter (P. Patarasuk, X. Yuan,
//                 2009) with one ring per position on the hosts.
#include "algorithms/cost_law.h"
#include "algorithms/host_map.h"

namespace tutti {
namespace {

class Hierarchical : public EntryOverHosts {
 public:
  Hierarchical(const char* name, const char* summary, HostRoute route)
      : EntryOverHosts(Collective::reduce_scatter, name, summary), route_(route) {}

  Shape shape(const Problem& problem) const override {
    return {.rounds = static_cast<std::uint32_t>(problem.groups[0].size()), .stages = {0}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    CostLaw cost_law = with_agents(problem, Agents::sum);
    if (route_ == HostRoute::ring) cost_law.rounded = roundings_in_ring(problem);
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const HostMap map(problem);
    const Rank hosts = map.hosts(), here = map.host_of(self);
    const bool ring = route_ == HostRoute::ring;
    // Host whose blocks are summed in this round.
    const Rank to = (ring ? here + hosts - 1 - round : here + round) % hosts;
    for (Rank block = map.first(to); block < map.end(to); ++block) {
      const Rank agent = map.agent(block, here);
      if (agent != self) steps.send(input(block), agent);
    }
    for (Rank block = map.first(to); block < map.end(to); ++block) {
      if (map.agent(block, here) == self) sum(map, block, round, steps);
    }
    if (ring || round == 0) return;
    const Rank from = (here + hosts - round) % hosts;
    const Fold fold = round + 1 == hosts ? Fold::complete : Fold::partial;
    steps.fold({output(0), lane(map.agent(self, from), 1)}, {output(0)}, fold);
  }

 private:
  // The ranks of a host send to an agent, each term once, and a sum is rounded on its way to each next host. The mean
  // over the blocks' hosts.
  static double roundings_in_ring(const Problem& problem) {
    const HostMap map(problem);
    const Rank hosts = map.hosts();
    double terms = 0;
    for (Rank home = 0; home < hosts; ++home) {
      double sum = 0;  // Terms of a sum for this host.
      for (Rank passed = 1; passed < hosts; ++passed) {
        sum += map.size((home + passed) % hosts);
        terms += sum / hosts;
      }
    }
    return (problem.ranks - hosts + terms) / problem.ranks;
  }

  // Sums the blocks of this host in rank order, after the sum of the hosts before it in a ring. Sends the sum to the
  // next host of the ring, or else to the block's owner: a rank of another host, or this rank.
  void sum(const HostMap& map, Rank block, std::uint32_t round, Steps& steps) const {
    const Rank self = steps.self(), hosts = map.hosts(), here = map.host_of(self);
    const bool ring = route_ == HostRoute::ring, complete = ring && round + 1 == hosts;
    std::vector<Operand> sources;
    if (ring && round > 0) sources.push_back(lane(map.agent(block, (here + hosts - 1) % hosts), 1));
    for (Rank rank = map.first(here); rank < map.end(here); ++rank)
      sources.push_back(rank == self ? input(block) : lane(rank, 1));
    const Rank receiver = ring && !complete ? map.agent(block, (here + 1) % hosts) : block;
    const Operand target = receiver == self ? output(0) : lane(receiver, 1);
    steps.add(sources, {&target, 1}, complete ? Fold::complete : Fold::partial);
  }

  HostRoute route_;
};

}  // namespace

const Algorithm& hierarchical_reduce_scatter() {
  static const Hierarchical algorithm("hierarchical", "sums inside hosts, only sums between hosts, (k-1)/k S per host",
                                      HostRoute::direct);
  return algorithm;
}

const Algorithm& host_ring_reduce_scatter() {
  static const Hierarchical algorithm("host_ring", "sums inside hosts, passed on through a ring of hosts",
                                      HostRoute::ring);
  return algorithm;
}

}  // namespace tutti
