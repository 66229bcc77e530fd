// Bruck's all-to-all. A block for the rank at distance i travels the distances of the set bits of i, together with all
// blocks that share the bit. Cost: log2(n) alpha + (S/2) log2(n) beta for any n, plus two copies through scratch. For
// tiny blocks of equal counts.
// Source: J. Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing systems",
// 1997.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class Bruck : public Entry<Algorithm> {
 public:
  Bruck() : Entry(Collective::all_to_all, "bruck", "log2(n) rounds for any n, equal counts only, log2(n)/2 S") {}

  Shape shape(const Problem& problem) const override {
    const Rank n = problem.ranks;
    return {.units = 1, .scratch = n, .rounds = std::max(1u, log2_rounded_up(n)), .stages = {0}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    std::vector<RoundTraffic> rounds;
    for (Rank distance = 1; distance < problem.ranks; distance *= 2) {
      const double blocks = with_bit(problem.ranks, distance);
      rounds.push_back({.sent = blocks, .received = blocks});
    }
    CostLaw cost_law = with_distances(problem, rounds, Partners::modulo);
    cost_law.copied = 2.0 * problem.ranks;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    if (round == 0) {  // scratch(i) is the block for distance i. Separate steps, since no message is longer.
      for (Rank i = 0; i < n; ++i) steps.copy(input((self + i) % n), scratch(i));
    }
    if (n > 1) {
      const Rank distance = Rank{1} << round;
      const Rank count = with_bit(n, distance);
      const Operand with_bit = strided(scratch(distance, count), distance, 2 * distance);
      steps.send(with_bit, (self + distance) % n);
      steps.recv((self + n - distance) % n, with_bit);
    }
    if (round + 1 == shape(problem).rounds) {  // The block that travelled distance i comes from rank self - i.
      for (Rank i = 0; i < n; ++i) steps.copy(scratch(i), output((self + n - i) % n));
    }
  }

 private:
  // Numbers below n in which `bit` is set.
  static Rank with_bit(Rank n, Rank bit) {
    const Rank full = n / (2 * bit) * bit, rest = n % (2 * bit);
    return full + (rest > bit ? rest - bit : 0);
  }
};

}  // namespace

const Algorithm& bruck_all_to_all() { return instance_of<Bruck>(); }

}  // namespace tutti
