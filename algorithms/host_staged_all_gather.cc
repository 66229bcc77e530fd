// All-gather between hosts of equal sizes whose switches multicast. In three stages, which overlap across chunks, each
// rank
//   0  sends its block to the ranks at its position on the other hosts, and signals that its scratch may be written;
//   1  stores its block, and those that it receives, to the scratch of all ranks of its host, and signals;
//   2  copies all blocks to its output.
// Stages 1 and 2 begin with the signals of all ranks of the host.
// Cost of k hosts of g ranks, with switches: S/g beta sent and S beta received through a port of the switches, and a
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
      : EntryOverEqualHosts(Collective::all_gather, "host_staged",
                            "each block once to each other host, multicast by switches inside it") {}

  Shape shape(const Problem& problem) const override {
    return {.scratch = problem.ranks, .rounds = 3, .stages = {0, 1, 2}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const HostMap map(problem);
    const double g = map.smallest(), k = map.hosts();
    CostLaw cost_law =
        in_peers_memory({.collective = Collective::all_gather, .ranks = map.smallest(), .groups = {}}, k * (g - 1), 0);
    cost_law.levels[1] = {
        .depth = 1, .chain = 1, .sent = k - 1, .received = k - 1, .messages = 2 * (k - 1), .between = g * (k - 1)};
    cost_law.copied = g * k + 1;
    cost_law.longest = 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const HostPlace place(problem, self);
    if (round == 0) return send(place, steps);
    if (round == 1) return store(place, self, steps);
    for (Rank block = 0; block < problem.ranks; ++block) {
      std::vector<Operand> sources;
      if (block == 0) sources = place.flags;
      sources.push_back(scratch(block));
      const Operand target = output(block);
      steps.add(sources, {&target, 1});
    }
  }

 private:
  static void send(const HostPlace& place, Steps& steps) {
    std::vector<Operand> targets;
    for (Rank i = 1; i < place.hosts; ++i) targets.push_back(lane(place.after(i), 1));
    targets.insert(targets.end(), place.flags.begin(), place.flags.end());
    const Operand source = input(0);
    steps.add({&source, 1}, targets);
  }

  static void store(const HostPlace& place, Rank self, Steps& steps) {
    std::vector<Operand> sources = place.flags;
    sources.push_back(input(0));
    for (Rank i = 0; i < place.hosts; ++i) {
      const Rank stored = i == 0 ? self : place.before(i);
      if (i > 0) sources = {lane(stored, 1)};
      std::vector<Operand> targets = {all_of_host(scratch(stored))};
      if (i + 1 == place.hosts) targets.insert(targets.end(), place.flags.begin(), place.flags.end());
      steps.add(sources, targets);
    }
  }
};

}  // namespace

const Algorithm& host_staged_all_gather() { return instance_of<HostStaged>(); }

}  // namespace tutti
