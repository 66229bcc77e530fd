// Chain broadcast: every rank passes on what it gets, in rank order from the root. (n-1) a + S b once pieces stream:
// full bandwidth, all of the latency. One round: slices and pieces stream through it alike.
#include "algorithms/effort.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class Chain : public Entry<Algorithm> {
 public:
  Chain() : Entry(Collective::broadcast, "chain", "from neighbour to neighbour, n-1 deep, S") {}

  Shape shape(const Problem&) const override { return {.rounds = 1, .stages = {0}}; }

  Effort effort(const Problem& problem) const override {
    const double hops = problem.ranks - 1, inner = problem.ranks > 2 ? 1 : 0;
    Effort effort =
        with_pipeline(problem, {.depth = hops, .chain = hops, .sent = 1, .received = inner, .messages = 1 + inner},
                      PipelineKind::chain);
    effort.copied = 1 - inner;
    effort.longest = 1;
    return effort;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t, Steps& steps) const override {
    const Rank n = problem.ranks;
    const bool is_root = self == problem.root;
    const Rank next = (self + 1) % n;
    std::vector<Operand> targets;
    if (!is_root || !problem.in_place) targets.push_back(output(0));
    if (next != problem.root) targets.push_back(lane(next, 1));
    const Operand source = is_root ? input(0) : lane((self + n - 1) % n, 1);
    if (!targets.empty()) steps.add({&source, 1}, targets);
  }
};

}  // namespace

const Algorithm& chain_broadcast() {
  static const Chain algorithm;
  return algorithm;
}

}  // namespace tutti
