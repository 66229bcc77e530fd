// Binomial tree gather and scatter. Rank numbers are relative to the root. A rank with lowest set bit i handles the
// blocks of its subtree, 2^i ranks from itself on. In round i of a gather it sends them to the rank 2^i before
// it. A scatter is the reverse: a rank receives the blocks of its subtree, and forwards the farther half first. Cost at
// the root: log2(n) alpha + (n-1)/n S beta, in log2(n) messages. Source: R. Thakur, R. Rabenseifner, W. Gropp,
// "Optimization of collective communication operations in MPICH", 2005.
#include <algorithm>
#include <bit>

#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class BinomialTree : public Entry<Algorithm> {
 public:
  using Entry::Entry;

  Shape shape(const Problem& problem) const override {
    const Rank n = problem.ranks;
    return {.units = 1, .scratch = n, .rounds = std::max(1u, log2_rounded_up(n)), .stages = {0}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const Rank n = problem.ranks;
    const double rounds = log2_rounded_up(n), others = n - 1;
    Traffic of_root = {.depth = rounds, .chain = others, .stalls = rounds, .messages = rounds};
    if (gathers(problem)) of_root.received = others;
    else of_root.sent = others;
    CostLaw cost_law = with_arbitrary_ranks(problem, of_root);
    cost_law.copied = 1;
    cost_law.longest = std::bit_floor(n) == n ? n / 2 : std::max(n - std::bit_floor(n), std::bit_floor(n) / 2);
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const std::uint32_t rounds = shape(problem).rounds;
    const bool copies = self != problem.root || !problem.in_place;
    if (gathers(problem)) {
      const Space gathered = self == problem.root ? Space::output : Space::scratch;
      if (round == 0 && copies) steps.copy(input(0), units(gathered, self, 1));
      exchange(problem, Rank{1} << round, gathered, steps);
    } else {
      const Space source = self == problem.root ? Space::input : Space::scratch;
      exchange(problem, Rank{1} << (rounds - 1 - round), source, steps);
      if (round + 1 == rounds && copies) steps.copy(units(source, self, 1), output(0));
    }
  }

 private:
  static bool gathers(const Problem& problem) { return problem.collective == Collective::gather; }

  // Exchanges the blocks of a subtree of `distance` ranks, if this rank is its root or the parent of that root. `own`:
  // where this rank has blocks.
  static void exchange(const Problem& problem, Rank distance, Space own, Steps& steps) {
    const Rank n = problem.ranks, self = steps.self();
    const Rank index = (self + n - problem.root) % n;  // Relative to the root.
    const bool is_child = index % (2 * distance) == distance;
    const bool is_parent = index % (2 * distance) == 0 && distance < n - index;
    if (!is_child && !is_parent) return;
    const Rank ahead = is_child ? 0 : distance;  // From this rank to the subtree.
    const Rank peer = (self + (is_child ? n - distance : distance)) % n;
    for (const auto& [first, blocks] : wrapped(self + ahead, std::min(distance, n - index - ahead), n).runs) {
      if (blocks == 0) continue;
      if (is_child == gathers(problem)) steps.send(units(own, first, blocks), peer);
      else steps.recv(peer, units(own, first, blocks));
    }
  }
};

}  // namespace

const Algorithm& binomial_tree_gather() {
  static const BinomialTree algorithm(Collective::gather, "binomial_tree",
                                      "log2(n) messages to the root, at most S/2 per rank");
  return algorithm;
}

const Algorithm& binomial_tree_scatter() {
  static const BinomialTree algorithm(Collective::scatter, "binomial_tree",
                                      "log2(n) messages from the root, (n-1)/n S");
  return algorithm;
}

}  // namespace tutti
