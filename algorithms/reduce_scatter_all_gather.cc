// All-reduce as reduce-scatter and all-gather of n blocks, composed from existing algorithms.
//   ring              2(n-1) alpha + 2(n-1)/n S beta      P. Patarasuk, X. Yuan, 2009
//   halving_doubling  2 log2(n) alpha + 2(n-1)/n S beta   R. Rabenseifner, 2004
//   two_shot          2 alpha + 2(n-1)/n S beta           direct, for full crossbars
#include <numeric>

#include "algorithms/catalogue.h"
#include "algorithms/entry.h"
#include "algorithms/memo.h"

namespace tutti {
namespace {

class ReduceScatterAllGather : public Entry<Sequence> {
 public:
  ReduceScatterAllGather(const char* name, const char* summary, const char* reduce_scatter, const char* all_gather)
      : Entry(Collective::all_reduce, name, summary), reduce_scatter_(reduce_scatter), all_gather_(all_gather) {}

  std::shared_ptr<const Composition> compose(const Problem& problem) const override {
    return memo_.get(problem, [&] { return composed(problem); });
  }

  CostLaw cost_law(const Problem& problem) const override {
    const auto part = [&](Collective collective, const char* name) {
      Problem of_blocks = problem;
      of_blocks.collective = collective;
      return divided(find(collective, name)->cost_law(of_blocks), problem.ranks);
    };
    CostLaw gather = part(Collective::all_gather, all_gather_);
    gather.copied = 0;  // In place.
    return then(part(Collective::reduce_scatter, reduce_scatter_), gather);
  }

 private:
  Composition composed(const Problem& problem) const {
    const Rank n = problem.ranks;
    Part scatter;
    scatter.algorithm = find(Collective::reduce_scatter, reduce_scatter_);
    scatter.problem = {.collective = Collective::reduce_scatter, .ranks = n, .groups = {}};
    scatter.members.resize(n);
    std::iota(scatter.members.begin(), scatter.members.end(), Rank{0});
    scatter.cuts.resize(n + 1);
    std::iota(scatter.cuts.begin(), scatter.cuts.end(), 0u);
    scatter.fold = Fold::complete;

    Part gather = scatter;
    gather.algorithm = find(Collective::all_gather, all_gather_);
    gather.problem.collective = Collective::all_gather;
    gather.input = Space::output;
    gather.tag = 1;
    const std::uint32_t scratch = scatter.algorithm->shape(scatter.problem).scratch;
    return {.units = n, .scratch = scratch, .stages = {{std::move(scatter)}, {std::move(gather)}}};
  }

  const char* reduce_scatter_;
  const char* all_gather_;
  mutable Memo memo_;
};

}  // namespace

const Algorithm& ring_all_reduce() {
  static const ReduceScatterAllGather algorithm("ring", "2(n-1) rounds in a ring, 2(n-1)/n S", "ring", "ring");
  return algorithm;
}

const Algorithm& halving_doubling_all_reduce() {
  static const ReduceScatterAllGather algorithm("halving_doubling", "2 log2(n) rounds, 2(n-1)/n S", "halving",
                                                "doubling");
  return algorithm;
}

const Algorithm& two_shot_all_reduce() {
  static const ReduceScatterAllGather algorithm("two_shot", "each block directly to its owner and back, 2(n-1)/n S",
                                                "direct", "direct");
  return algorithm;
}

}  // namespace tutti
