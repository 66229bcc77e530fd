// Hierarchical broadcast: the root scatters shards inside its host. Each shard travels from host to host along its own
// rail, which has one rank per host, and is forwarded inside each host. A host's link carries S in and S out, S/rails
// per rank. Cost: (k+1) alpha + S beta when chunks are pipelined: a chunk is scattered while another one is between
// hosts. Sources: chain broadcast between hosts, and van de Geijn's scatter and all-gather inside hosts.
#include "algorithms/cost_law.h"
#include "algorithms/host_rails.h"

namespace tutti {
namespace {

class Hierarchical : public EntryOverHosts {
 public:
  Hierarchical()
      : EntryOverHosts(Collective::broadcast, "hierarchical",
                       "shards along a chain of hosts, S per host and direction") {}

  Shape shape(const Problem& problem) const override {
    return {.units = HostMap(problem).smallest(), .rounds = 3, .stages = {0, 1, 2}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const HostRails rails(problem);
    const double count = rails.count, hosts = rails.map.hosts();
    const double deals = (count - 1) / count, hands_on = (rails.map.size(rails.home) - 1) / count;
    CostLaw cost_law;
    cost_law.levels[0] = {.depth = 2, .chain = 2 / count, .sent = deals + hands_on};
    cost_law.levels[0].messages = count * cost_law.levels[0].sent;
    cost_law.levels[1] = {
        .depth = hosts - 1, .chain = (hosts - 1) / count, .sent = 1 / count, .messages = 1, .between = 1};
    cost_law.copied = 1;
    cost_law.longest = 1 / count;
    cost_law.units = rails.count;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const HostRails rails(problem);
    const Rank here = rails.map.host_of(self);
    const bool is_root = self == problem.root;
    for (Rank shard = 0; shard < rails.count; ++shard) {
      const Rank from = rails.rank(shard, here);
      if (round == 0 && is_root && shard > 0) deal(problem, shard, rails, steps);
      if (round == 1 && from == self) pass_on(problem, shard, rails, steps);
      if (round == 2 && from != self && !is_root) steps.recv(from, output(shard));
    }
  }

 private:
  // Sends a shard to its rail in the root's host, and stores it to the root's own output.
  static void deal(const Problem& problem, Rank shard, const HostRails& rails, Steps& steps) {
    const Operand own = input(shard);
    std::vector<Operand> targets;
    if (!problem.in_place) targets.push_back(output(shard));
    targets.push_back(lane(rails.rank(shard, rails.home), 1));
    steps.add({&own, 1}, targets);
  }

  // Sends a shard to the next host, unless that is the root's, and to all ranks of this host that need it.
  static void pass_on(const Problem& problem, Rank shard, const HostRails& rails, Steps& steps) {
    const Rank self = steps.self(), here = rails.map.host_of(self), hosts = rails.map.hosts();
    const bool is_root = self == rails.root;
    const Rank before = here == rails.home ? rails.root : rails.rank(shard, (here + hosts - 1) % hosts);
    const Operand source = is_root ? input(shard) : lane(before, 1);
    std::vector<Operand> targets;
    if (!is_root || !problem.in_place) targets.push_back(output(shard));
    if ((here + 1) % hosts != rails.home) targets.push_back(lane(rails.rank(shard, (here + 1) % hosts), 1));
    for (Rank rank = rails.map.first(here); rank < rails.map.end(here); ++rank) {
      if (rank != self && rank != rails.root) targets.push_back(lane(rank, 1));
    }
    steps.add({&source, 1}, targets);
  }
};

}  // namespace

const Algorithm& hierarchical_broadcast() { return instance_of<Hierarchical>(); }

}  // namespace tutti
