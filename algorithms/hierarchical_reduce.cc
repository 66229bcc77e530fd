// Hierarchical reduce: the hierarchical broadcast in reverse. The ranks of a host send each shard to the rank of its
// rail, which adds them to the sum of the hosts behind it and sends the result to the host before it. In the root's
// host the ranks of the rails send the sums to the root. A host's link carries S in and S out, S/rails per rank. Cost:
// (k+1) alpha + S beta when chunks are pipelined: a chunk is between hosts while others are inside.
#include "algorithms/cost_law.h"
#include "algorithms/host_rails.h"

namespace tutti {
namespace {

class Hierarchical : public EntryOverHosts {
 public:
  Hierarchical()
      : EntryOverHosts(Collective::reduce, "hierarchical",
                       "shards summed inside hosts and along a chain of hosts, S per host and direction") {}

  Shape shape(const Problem& problem) const override {
    return {.units = HostMap(problem).smallest(), .rounds = 3, .stages = {0, 1, 2}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const HostRails rails(problem);
    const double count = rails.count, hosts = rails.map.hosts(), size = rails.map.size(rails.home);
    const double collected = (count - 1) / count, summed = (size - 1) / count;  // Blocks that the root receives.
    CostLaw cost_law;
    Traffic &inside = cost_law.levels[0], &across = cost_law.levels[1];
    inside = {.depth = 2, .chain = 2 / count, .sent = collected, .received = collected + summed};
    inside.messages = count * (inside.sent + inside.received);
    across = {.depth = hosts - 1, .chain = (hosts - 1) / count, .sent = 1 / count, .received = 1 / count};
    across.messages = 2;
    across.between = 1;
    cost_law.folded = summed + 1 / count;
    cost_law.copied = collected;
    cost_law.longest = 1 / count;
    cost_law.units = rails.count;
    cost_law.rounded = roundings(rails);
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const HostRails rails(problem);
    const Rank here = rails.map.host_of(self);
    for (Rank shard = 0; shard < rails.count; ++shard) {
      const Rank to = rails.rank(shard, here);
      if (round == 0 && to != self) steps.send(input(shard), to);
      if (round == 1 && to == self) sum(shard, rails, steps);
      if (round == 2 && to != self && self == problem.root) steps.recv(to, output(shard));
    }
  }

 private:
  // Adds the inputs of this host in rank order to the sum of the hosts behind it.
  static void sum(Rank shard, const HostRails& rails, Steps& steps) {
    const Rank self = steps.self(), here = rails.map.host_of(self), hosts = rails.map.hosts();
    const Rank behind = (here + 1) % hosts, before = (here + hosts - 1) % hosts;
    const bool at_home = here == rails.home;
    std::vector<Operand> sources;
    if (behind != rails.home) sources.push_back(lane(rails.rank(shard, behind), 1));
    for (Rank rank = rails.map.first(here); rank < rails.map.end(here); ++rank)
      sources.push_back(rank == self ? input(shard) : lane(rank, 1));
    const Operand target = self == rails.root ? output(shard)
                           : at_home          ? lane(rails.root, 1)
                                              : lane(rails.rank(shard, before), 1);
    steps.add(sources, {&target, 1}, at_home ? Fold::complete : Fold::partial);
  }

  // Each term is rounded once inside a host, unless its rank is on the rail, and a sum with all its terms on its way to
  // each next host and to the root, unless the root is on the rail. The mean over the shards.
  static double roundings(const HostRails& rails) {
    const Rank hosts = rails.map.hosts();
    double terms = 0, behind = 0, ranks = 0;
    for (Rank distance = hosts; distance-- > 0;) {
      const Rank size = rails.map.size((rails.home + distance) % hosts);
      ranks += size;
      terms += size - 1 + behind;
      behind += size;
    }
    const double collected = static_cast<double>(rails.count - 1) / rails.count;
    return terms / ranks + collected;
  }
};

}  // namespace

const Algorithm& hierarchical_reduce() { return instance_of<Hierarchical>(); }

}  // namespace tutti
