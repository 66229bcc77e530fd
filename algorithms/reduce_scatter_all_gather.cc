// All-reduce as reduce-scatter and all-gather of n blocks, composed from existing algorithms.
//   ring              2(n-1) alpha + 2(n-1)/n S beta      P. Patarasuk, X. Yuan, 2009
//   halving_doubling  2 log2(n) alpha + 2(n-1)/n S beta   R. Rabenseifner, 2004
//   two_shot          2 alpha + 2(n-1)/n S beta           direct, for full crossbars
//   host_ring         2 k alpha + 2(k-1)/k S beta         a ring of k hosts; beta of the link of a host
#include <numeric>

#include "algorithms/catalogue.h"
#include "algorithms/entry.h"
#include "algorithms/host_map.h"
#include "algorithms/memo.h"

namespace tutti {
namespace {

constexpr Rank kMaxRanksOnHosts = 1024;  // With more, plans of all ranks take seconds to emit.

// Whether the parts distinguish hosts. If so, they share their lanes, of which they have two.
enum class Parts : std::uint8_t { of_ranks, of_hosts };

class ReduceScatterAllGather : public Entry<Sequence> {
 public:
  ReduceScatterAllGather(const char* name, const char* summary, const char* reduce_scatter, const char* all_gather,
                         Parts parts = Parts::of_ranks)
      : Entry(Collective::all_reduce, name, summary),
        reduce_scatter_(reduce_scatter),
        all_gather_(all_gather),
        parts_(parts) {}

  bool supports(const Problem& problem) const override {
    const bool by_hosts = problem.ranks <= kMaxRanksOnHosts && has_hosts(problem);
    return Entry::supports(problem) && (parts_ == Parts::of_ranks || by_hosts);
  }

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
    if (parts_ == Parts::of_hosts) scatter.problem.groups = problem.groups;
    scatter.members.resize(n);
    std::iota(scatter.members.begin(), scatter.members.end(), Rank{0});
    scatter.cuts.resize(n + 1);
    std::iota(scatter.cuts.begin(), scatter.cuts.end(), 0u);
    scatter.fold = Fold::complete;

    Part gather = scatter;
    gather.algorithm = find(Collective::all_gather, all_gather_);
    gather.problem.collective = Collective::all_gather;
    gather.input = Space::output;
    gather.tag = parts_ == Parts::of_hosts ? 0 : 1;
    const std::uint32_t scratch = scatter.algorithm->shape(scatter.problem).scratch;
    return {.units = n, .scratch = scratch, .stages = {{std::move(scatter)}, {std::move(gather)}}};
  }

  const char* reduce_scatter_;
  const char* all_gather_;
  Parts parts_;
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

const Algorithm& host_ring_all_reduce() {
  static const ReduceScatterAllGather algorithm("host_ring", "sums inside hosts, passed twice around a ring of hosts",
                                                "host_ring", "host_ring", Parts::of_hosts);
  return algorithm;
}

}  // namespace tutti
