// Reduce-scatter in a ring of hosts: the sum of a block passes all hosts in turn and ends at its owner. On each host
// the rank at the owner's position adds the blocks of its host. There are k rounds. A rank sends to one rank of the
// next host only, where the hierarchical reduce-scatter sends to k-1 hosts. A host's link carries (k-1)/k S per
// direction. Latency: 2 k alpha. Source: ring reduce-scatter (P. Patarasuk, X. Yuan, 2009) with one ring per position
// on the hosts.
#include "algorithms/cost_law.h"
#include "algorithms/host_map.h"

namespace tutti {
namespace {

class HostRing : public EntryOverHosts {
 public:
  HostRing()
      : EntryOverHosts(Collective::reduce_scatter, "host_ring",
                       "sums inside hosts, passed on through a ring of hosts") {}

  Shape shape(const Problem& problem) const override {
    return {.rounds = static_cast<std::uint32_t>(problem.groups[0].size()), .stages = {0}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    CostLaw cost_law = with_agents(problem, Agents::sum);
    cost_law.rounded = roundings(problem);
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const HostMap map(problem);
    const Rank hosts = map.hosts(), here = map.host_of(self);
    const Rank to = (here + hosts - 1 - round) % hosts;  // Host to whose blocks this host adds in this round.
    for (Rank block = map.first(to); block < map.end(to); ++block) {
      const Rank agent = map.agent(block, here);
      if (agent != self) steps.send(input(block), agent);
    }
    for (Rank block = map.first(to); block < map.end(to); ++block) {
      if (map.agent(block, here) == self) add(map, block, round, steps);
    }
  }

 private:
  // The ranks of a host send to an agent, each term once, and a sum is rounded on its way to each next host. The mean
  // over the blocks' hosts.
  static double roundings(const Problem& problem) {
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

  // Adds the blocks of this host to the sum of the hosts before it, in rank order.
  static void add(const HostMap& map, Rank block, std::uint32_t round, Steps& steps) {
    const Rank self = steps.self(), hosts = map.hosts(), here = map.host_of(self);
    std::vector<Operand> sources;
    if (round > 0) sources.push_back(lane(map.agent(block, (here + hosts - 1) % hosts), 1));
    for (Rank rank = map.first(here); rank < map.end(here); ++rank)
      sources.push_back(rank == self ? input(block) : lane(rank, 1));
    const bool last = round + 1 == hosts;
    const Operand target = last ? output(0) : lane(map.agent(block, (here + 1) % hosts), 1);
    steps.add(sources, {&target, 1}, last ? Fold::complete : Fold::partial);
  }
};

}  // namespace

const Algorithm& host_ring_reduce_scatter() { return instance_of<HostRing>(); }

}  // namespace tutti
