// Binomial tree gather. Rank numbers are relative to the root. In round i, a rank with lowest set bit i sends the
// blocks of its subtree to the rank 2^i before it. Cost at the root: log2(n) alpha + (n-1)/n S beta, in log2(n)
// messages. Inner ranks stage blocks in scratch. Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of
// collective communication operations in MPICH", 2005.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class BinomialTree : public Entry<Algorithm> {
 public:
  BinomialTree() : Entry(Collective::gather, "binomial_tree", "log2(n) messages to the root, at most S/2 per rank") {}

  Shape shape(const Problem& problem) const override {
    const Rank n = problem.ranks;
    return {.units = 1, .scratch = n, .rounds = std::max(1u, log2_rounded_up(n)), .stages = {0}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const Rank n = problem.ranks;
    const double rounds = log2_rounded_up(n), others = n - 1;
    CostLaw cost_law = with_arbitrary_ranks(
        problem, {.depth = rounds, .chain = others, .stalls = rounds, .received = others, .messages = rounds});
    cost_law.copied = 1;
    cost_law.longest = std::bit_floor(n) == n ? n / 2 : std::max(n - std::bit_floor(n), std::bit_floor(n) / 2);
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks, root = problem.root;
    const Rank index = (self + n - root) % n;  // Relative to the root.
    const Rank distance = Rank{1} << round;
    const Space gathered = self == root ? Space::output : Space::scratch;
    if (round == 0 && (self != root || !problem.in_place)) steps.copy(input(0), units(gathered, self, 1));

    if (index % (2 * distance) == distance) {
      const Rank count = std::min(distance, n - index);
      for (const auto& [first, blocks] : wrapped(self, count, n).runs) {
        if (blocks > 0) steps.send(scratch(first, blocks), (self + n - distance) % n);
      }
    } else if (index % (2 * distance) == 0 && distance < n - index) {
      const Rank count = std::min(distance, n - index - distance);
      for (const auto& [first, blocks] : wrapped(self + distance, count, n).runs) {
        if (blocks > 0) steps.recv((self + distance) % n, units(gathered, first, blocks));
      }
    }
  }
};

}  // namespace

const Algorithm& binomial_tree_gather() { return instance_of<BinomialTree>(); }

}  // namespace tutti
