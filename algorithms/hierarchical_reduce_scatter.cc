// Hierarchical reduce-scatter: each block of another host is summed by the rank at its owner's position, and only the
// sum is sent. There are k rounds. In round d, hosts sum for the d-th host after them, so no two send to the same one.
// A host's link carries (k-1)/k S per direction, instead of g times as much. Sums need no memory, since they are sent
// directly. Latency: 2 k alpha. Source: the hierarchical all-gather of this catalogue in reverse.
#include "algorithms/cost_law.h"
#include "algorithms/host_map.h"

namespace tutti {
namespace {

class Hierarchical : public EntryOverHosts {
 public:
  Hierarchical()
      : EntryOverHosts(Collective::reduce_scatter, "hierarchical",
                       "sums inside hosts, only sums between hosts, (k-1)/k S per host") {}

  Shape shape(const Problem& problem) const override {
    return {.rounds = static_cast<std::uint32_t>(problem.groups[0].size()), .stages = {0}};
  }

  CostLaw cost_law(const Problem& problem) const override { return with_agents(problem, Agents::sum); }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const HostMap map(problem);
    const Rank hosts = map.hosts(), here = map.host_of(self);
    const Rank to = (here + round) % hosts;  // Host whose blocks are summed in this round.
    for (Rank block = map.first(to); block < map.end(to); ++block) {
      const Rank agent = map.agent(block, here);
      if (agent != self) steps.send(input(block), agent);
    }
    for (Rank block = map.first(to); block < map.end(to); ++block) {
      if (map.agent(block, here) == self) sum(map, block, steps);
    }
    if (round == 0) return;
    const Rank from = (here + hosts - round) % hosts;
    const Fold fold = round + 1 == hosts ? Fold::complete : Fold::partial;
    steps.fold({output(0), lane(map.agent(self, from), 1)}, {output(0)}, fold);
  }

 private:
  // Sums in rank order for the block's owner: a rank of another host, or this rank.
  static void sum(const HostMap& map, Rank block, Steps& steps) {
    const Rank self = steps.self(), here = map.host_of(self);
    std::vector<Operand> sources;
    for (Rank rank = map.first(here); rank < map.end(here); ++rank)
      sources.push_back(rank == self ? input(block) : lane(rank, 1));
    const Operand target = block == self ? output(0) : lane(block, 1);
    steps.add(sources, {&target, 1});
  }
};

}  // namespace

const Algorithm& hierarchical_reduce_scatter() { return instance_of<Hierarchical>(); }

}  // namespace tutti
