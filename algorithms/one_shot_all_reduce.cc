// One-shot all-reduce: every rank sends its whole input to all others, and each reduces all inputs in rank order, so
// that all ranks get identical bits. Cost: alpha + (n-1) S beta. For messages of a few kilobytes.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class OneShot : public Entry<Algorithm> {
 public:
  OneShot()
      : Entry(Collective::all_reduce, "one_shot",
              "each input to all ranks, one n-way reduction in rank order, (n-1) S") {}

  Shape shape(const Problem&) const override { return {.rounds = 2, .stages = {0, 1}}; }

  // Each rank computes its own sum, from its exact input and the compressed inputs of others.
  bool supports_compression(const Problem& problem) const override { return problem.ranks == 1; }

  CostLaw cost_law(const Problem& problem) const override {
    const double others = problem.ranks - 1;
    CostLaw cost_law = with_all(problem, at_once(others));
    cost_law.folded = others;
    cost_law.longest = 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    std::vector<Operand> lanes, operands;
    for (Rank i = 1; i < n; ++i) lanes.push_back(lane((self + i) % n, 1));
    for (Rank rank = 0; rank < n; ++rank) operands.push_back(rank == self ? input(0) : lane(rank, 1));

    const Operand own = input(0), result = output(0);
    if (round == 0 && n > 1) steps.add({&own, 1}, lanes);
    if (round == 1) steps.add(operands, {&result, 1}, Fold::complete);
  }
};

}  // namespace

const Algorithm& one_shot_all_reduce() { return instance_of<OneShot>(); }

}  // namespace tutti
