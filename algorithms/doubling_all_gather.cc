// Recursive doubling all-gather: recursive halving in reverse. Groups in which every rank holds all blocks merge in
// pairs. Cost: ceil(log2 n) alpha + (n-1)/n S beta if n is a power of two; otherwise some rounds have one more message.
// Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", 2005.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/halving.h"

namespace tutti {
namespace {

class RecursiveDoubling : public Entry<Algorithm> {
 public:
  RecursiveDoubling()
      : Entry(Collective::all_gather, "doubling", "log2(n) rounds, message size doubles each round, (n-1)/n S") {}

  Shape shape(const Problem& problem) const override { return exchange_shape({}, problem.ranks); }

  CostLaw cost_law(const Problem& problem) const override {
    std::vector<RoundTraffic> rounds = rounds_by_halves(problem.ranks);
    for (RoundTraffic& round : rounds) std::swap(round.sent, round.received);
    CostLaw cost_law = with_distances(problem, rounds, Partners::by_bits);
    cost_law.copied = 1;
    cost_law.longest = (problem.ranks + 1) / 2;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    if (round == 0 && !problem.in_place) steps.copy(input(0), output(self));
    if (problem.ranks == 1) return;
    const std::uint32_t exchanges = log2_rounded_up(problem.ranks);
    const bool pipelined = pipelines_exchanges(problem.ranks);
    if (round > 0 && pipelined) receive(halving(problem.ranks, self, exchanges - round), steps);
    if (round == exchanges) return;
    const Halving half = halving(problem.ranks, self, exchanges - 1 - round);
    for (const Rank peer : half.from) steps.send(output(half.kept.first, half.kept.count), peer);
    if (!pipelined) receive(half, steps);
  }

 private:
  static void receive(const Halving& half, Steps& steps) {
    if (half.given.count > 0) steps.recv(half.to, output(half.given.first, half.given.count));
  }
};

}  // namespace

const Algorithm& doubling_all_gather() { return instance_of<RecursiveDoubling>(); }

}  // namespace tutti
