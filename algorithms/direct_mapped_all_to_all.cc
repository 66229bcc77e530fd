// All-to-all in mapped memory: each rank stores its blocks into the receivers' outputs, one after the other. Cost:
// (n-1)/n S beta and two flag rounds, for each pair separately. Not in place, since a store would overwrite blocks that
// the peer has not sent yet.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class DirectMapped : public Entry<Algorithm> {
 public:
  DirectMapped()
      : Entry(Collective::all_to_all, "direct_mapped",
              "each rank stores its blocks in the memory of the receivers, (n-1)/n S") {}

  bool supports(const Problem& problem) const override {
    return Entry::supports(problem) && (!problem.in_place || problem.ranks == 1);
  }

  Shape shape(const Problem&) const override { return {.rounds = 3, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    CostLaw cost_law = in_peers_memory(problem, problem.ranks - 1, 0);
    cost_law.copied = 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    for (Rank i = 1; i < n; ++i) {
      const Rank peer = (self + i) % n;
      if (round == 0) steps.signal(peer);
      if (round == 1) steps.fold({flag(peer), input(peer)}, {at(peer, output(self)), flag(peer)});
      if (round == 2) steps.await(peer);
    }
    if (round == 1 && !problem.in_place) steps.copy(input(self), output(self));
  }
};

}  // namespace

const Algorithm& direct_mapped_all_to_all() { return instance_of<DirectMapped>(); }

}  // namespace tutti
