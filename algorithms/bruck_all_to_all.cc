// Bruck's all-to-all: a block that has to go i ranks ahead travels the distances of the bits of i, together with all
// others that share the bit. log2(n) a + (S/2) log2(n) b for any n, plus two passes through scratch: for tiny blocks of
// equal counts. J. Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing
// systems", 1997.
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
    std::vector<RoundTraffic> turns;
    for (Rank distance = 1; distance < problem.ranks; distance *= 2) {
      const double blocks = with_bit(problem.ranks, distance);
      turns.push_back({.sent = blocks, .received = blocks});
    }
    CostLaw cost_law = with_distances(problem, turns, Partners::round_a_circle);
    cost_law.copied = 2.0 * problem.ranks;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    if (round == 0) {  // scratch(i) = the block that has to go i ranks ahead. One by one: no longer than a message.
      for (Rank i = 0; i < n; ++i) steps.copy(input((self + i) % n), scratch(i));
    }
    if (n > 1) {
      const Rank distance = Rank{1} << round;
      const Rank count = with_bit(n, distance);
      const Operand with_bit = strided(scratch(distance, count), distance, 2 * distance);
      steps.send(with_bit, (self + distance) % n);
      steps.recv((self + n - distance) % n, with_bit);
    }
    if (round + 1 == shape(problem).rounds) {  // What came i ranks far is from the rank i behind.
      for (Rank i = 0; i < n; ++i) steps.copy(scratch(i), output((self + n - i) % n));
    }
  }

 private:
  // Numbers below n that have the bit.
  static Rank with_bit(Rank n, Rank bit) {
    const Rank full = n / (2 * bit) * bit, rest = n % (2 * bit);
    return full + (rest > bit ? rest - bit : 0);
  }
};

}  // namespace

const Algorithm& bruck_all_to_all() {
  static const Bruck algorithm;
  return algorithm;
}

}  // namespace tutti
