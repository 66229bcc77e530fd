// Reductions in the scratch of all ranks, for buffers that peers cannot access, in three stages that overlap across
// chunks. Each rank copies its input into its scratch and signals; reduces its block or unit over the scratch of all
// ranks and signals; and, in an all-reduce, copies the results to its output. A stage begins after the signals of all
// peers. Two flag rounds.
//
// direct_staged and two_shot_staged access the scratch of each peer, in rank order, and copy nothing for themselves:
//   reduce-scatter  (n-1)/n S beta read, and a copy of (n-1)/n S
//   all-reduce      2(n-1)/n S beta, and two copies of (n-1)/n S. Each sum is stored to the scratch of all peers.
//
// switch_staged accesses the scratch of all ranks at once: switches add what they read, and multicast what is stored
// (NCCL: NVLS). Its cost law is that of the algorithm without switches. With switches:
//   reduce-scatter  S beta sent, since a rank's own part passes its port, too; S/n beta received; a copy of S
//   all-reduce      (1 + 1/n) S beta in each direction, and two copies of S
//
// Units [0, n) of scratch are contributions. In an all-reduce, units [n, 2n) are results.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class StagedReduction : public Entry<Algorithm> {
 public:
  StagedReduction(Collective collective, const char* name, const char* summary, PeerAccess access)
      : Entry(collective, name, summary), access_(access) {}

  Shape shape(const Problem& problem) const override {
    const Rank n = problem.ranks;
    if (stores_results(problem)) return {.units = n, .scratch = 2 * n, .rounds = 3, .stages = {0, 1, 2}};
    return {.scratch = n, .rounds = 3, .stages = {0, 1, 2}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const double n = problem.ranks, whole = stores_results(problem) ? 1 : n;  // In blocks of the problem.
    const double others = stores_results(problem) ? 1 - 1.0 / n : n - 1;
    CostLaw cost_law = in_peers_memory(problem, stores_results(problem) ? others : 0, others);
    cost_law.folded = others;
    cost_law.copied = (stores_results(problem) ? 2 : 1) * (access_ == PeerAccess::switches ? whole : others);
    cost_law.units = stores_results(problem) ? problem.ranks : 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    if (round == 0) return copy_in(self, problem.ranks, steps);
    if (round == 1) return reduce(self, problem, steps);
    if (stores_results(problem)) copy_out(self, problem.ranks, steps);
    else if (problem.ranks > 1) steps.add(flags_of_peers(self, problem.ranks), {});
  }

 private:
  static bool stores_results(const Problem& problem) { return problem.collective == Collective::all_reduce; }

  // Units that a rank copies. Without switches, it leaves out its own, and begins with the next rank's.
  std::vector<Rank> copied_by(Rank self, Rank n) const {
    std::vector<Rank> copied;
    for (Rank i = 0; i < n; ++i) {
      if (access_ == PeerAccess::switches) copied.push_back(i);
      else if (i > 0) copied.push_back((self + i) % n);
    }
    return copied;
  }

  void copy_in(Rank self, Rank n, Steps& steps) const {
    const std::vector<Operand> flags = flags_of_peers(self, n);
    const std::vector<Rank> copied = copied_by(self, n);
    for (const Rank& unit : copied) {
      const Operand source = input(unit);
      std::vector<Operand> targets = {scratch(unit)};
      if (&unit == &copied.back()) targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add({&source, 1}, targets);
    }
  }

  void reduce(Rank self, const Problem& problem, Steps& steps) const {
    const Rank n = problem.ranks;
    const std::vector<Operand> flags = flags_of_peers(self, n);
    const bool by_switches = access_ == PeerAccess::switches;
    std::vector<Operand> sources = flags, targets;
    if (by_switches) sources.push_back(all(scratch(self)));
    for (Rank rank = 0; rank < n && !by_switches; ++rank)
      sources.push_back(rank == self ? input(self) : at(rank, scratch(self)));
    if (!stores_results(problem)) targets.push_back(output(0));
    else if (by_switches) targets.push_back(all(scratch(n + self)));
    else targets.push_back(output(self));
    for (Rank i = 1; i < n && stores_results(problem) && !by_switches; ++i)
      targets.push_back(at((self + i) % n, scratch(n + self)));
    targets.insert(targets.end(), flags.begin(), flags.end());
    steps.add(sources, targets, Fold::complete);
  }

  void copy_out(Rank self, Rank n, Steps& steps) const {
    const std::vector<Rank> copied = copied_by(self, n);
    for (const Rank& unit : copied) {
      std::vector<Operand> sources;
      if (&unit == &copied.front()) sources = flags_of_peers(self, n);
      sources.push_back(scratch(n + unit));
      const Operand target = output(unit);
      steps.add(sources, {&target, 1});
    }
  }

  PeerAccess access_;
};

}  // namespace

const Algorithm& direct_staged_reduce_scatter() {
  static const StagedReduction algorithm(
      Collective::reduce_scatter, "direct_staged",
      "each rank reduces its block from the scratch of all peers, (n-1)/n S and a copy of (n-1)/n S",
      PeerAccess::each_peer);
  return algorithm;
}

const Algorithm& two_shot_staged_all_reduce() {
  static const StagedReduction algorithm(
      Collective::all_reduce, "two_shot_staged",
      "each rank reduces a share in the scratch of all peers and stores it there, 2(n-1)/n S and two copies",
      PeerAccess::each_peer);
  return algorithm;
}

const Algorithm& switch_staged_reduce_scatter() {
  static const StagedReduction algorithm(Collective::reduce_scatter, "switch_staged",
                                         "switches add the scratch of all ranks, S out of each rank and a copy of S",
                                         PeerAccess::switches);
  return algorithm;
}

const Algorithm& switch_staged_all_reduce() {
  static const StagedReduction algorithm(
      Collective::all_reduce, "switch_staged",
      "switches add the scratch of all ranks and store the sums to all, (1 + 1/n) S and two copies",
      PeerAccess::switches);
  return algorithm;
}

}  // namespace tutti
