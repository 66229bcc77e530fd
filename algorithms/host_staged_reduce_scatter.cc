// Reduce-scatter between hosts of equal sizes whose switches add. In three stages, which overlap across chunks, each
// rank
//   0  copies its input into its scratch, and signals;
//   1  adds the blocks at its position over the scratch of all ranks of its host, sends each other host the sum of its
//      block, and signals that the scratch may be written;
//   2  adds the sums of all hosts.
// Stages 1 and 2 begin with the signals of all ranks of the host.
// Cost of k hosts of g ranks, with switches: S beta sent and S/g beta received through a port of the switches, and a
// copy of S; (k-1)/(k g) S beta between hosts. Two flag rounds and one message.
//
// Scratch has a unit per block.
#include "algorithms/cost_law.h"
#include "algorithms/host_place.h"

namespace tutti {
namespace {

class HostStaged : public EntryOverEqualHosts {
 public:
  HostStaged()
      : EntryOverEqualHosts(Collective::reduce_scatter, "host_staged",
                            "switches add inside hosts, only sums are sent between hosts") {}

  Shape shape(const Problem& problem) const override {
    return {.scratch = problem.ranks, .rounds = 3, .stages = {0, 1, 2}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const HostMap map(problem);
    const double g = map.smallest(), k = map.hosts();
    CostLaw cost_law = in_peers_memory(
        {.collective = Collective::reduce_scatter, .ranks = map.smallest(), .groups = {}}, 0, k * (g - 1));
    cost_law.levels[1] = {
        .depth = 1, .chain = 1, .sent = k - 1, .received = k - 1, .messages = 2 * (k - 1), .between = g * (k - 1)};
    cost_law.folded = k * (g - 1) + k - 1;
    cost_law.copied = g * k;
    cost_law.longest = 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const HostPlace place(problem, self);
    if (round == 0) return copy_in(place, problem.ranks, steps);
    if (round == 1) return add_inside(place, self, steps);
    std::vector<Operand> sources = place.flags;
    for (Rank host = 0; host < place.hosts; ++host)
      sources.push_back(host == place.host ? output(0) : lane(place.rank_on(host), 1));
    const Operand target = output(0);
    steps.add(sources, {&target, 1}, Fold::complete);
  }

 private:
  static void copy_in(const HostPlace& place, Rank ranks, Steps& steps) {
    for (Rank block = 0; block < ranks; ++block) {
      const Operand source = input(block);
      std::vector<Operand> targets = {scratch(block)};
      if (block + 1 == ranks) targets.insert(targets.end(), place.flags.begin(), place.flags.end());
      steps.add({&source, 1}, targets);
    }
  }

  static void add_inside(const HostPlace& place, Rank self, Steps& steps) {
    std::vector<Operand> sources = place.flags;
    for (Rank i = 1; i <= place.hosts; ++i) {
      const Rank owner = i == place.hosts ? self : place.after(i);
      sources.push_back(all_of_host(scratch(owner)));
      std::vector<Operand> targets = {owner == self ? output(0) : lane(owner, 1)};
      if (owner == self) targets.insert(targets.end(), place.flags.begin(), place.flags.end());
      steps.add(sources, targets);
      sources.clear();
    }
  }
};

}  // namespace

const Algorithm& host_staged_reduce_scatter() { return instance_of<HostStaged>(); }

}  // namespace tutti
