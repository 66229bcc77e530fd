#include "src/plan/fuse.h"

#include <algorithm>
#include <vector>

namespace tutti {
namespace {

// A mutable step. It keeps its round, but not its index.
struct Draft {
  std::vector<Operand> sources, targets;
  Fold fold = Fold::partial;
  std::uint32_t round = 0;
  bool gone = false;
};

bool is_lane(const Operand& operand) { return operand.space == Space::lane; }
bool same_lane(const Operand& a, const Operand& b) {
  return is_lane(a) && is_lane(b) && a.peer == b.peer && a.tag == b.tag;
}

class Fuser {
 public:
  Fuser(Plan& plan, Across across)
      : plan_(plan),
        across_(across),
        self_(plan.steps.self()),
        shift_(plan.problem.in_place ? in_place_shift(plan.problem, self_) * plan.shape.units : 0) {
    for (std::uint32_t round = 0; round + 1 < plan.rounds.size(); ++round) {
      for (std::uint32_t i = plan.rounds[round]; i < plan.rounds[round + 1]; ++i) {
        const Step step = plan.steps[i];
        drafts_.push_back({.sources = {step.sources.begin(), step.sources.end()},
                           .targets = {step.targets.begin(), step.targets.end()},
                           .fold = step.fold,
                           .round = round,
                           .gone = false});
        if (stays(drafts_.back())) holds_still_ = true;
      }
    }
  }

  // Joins copies first: sources that they no longer read may become dead, and later folds can then take them over.
  void run() {
    for (std::size_t i = 0; i < drafts_.size(); ++i) join_earlier(i);
    for (std::size_t i = 0; i < drafts_.size(); ++i) gather_earlier(i);
    if (!holds_still_) drop_dead_scratch();
    write_back();
  }

 private:
  // Returns whether the step must stay in place because other ranks depend on it in ways that this rank cannot see.
  bool stays(const Draft& draft) const {
    const auto binds = [&](const Operand& operand) {
      return operand.space == Space::flag || (operand.is_memory() && operand.peer != self_);
    };
    return std::any_of(draft.sources.begin(), draft.sources.end(), binds) ||
           std::any_of(draft.targets.begin(), draft.targets.end(), binds);
  }

  std::uint32_t stage_of(std::uint32_t round) const {
    if (across_ == Across::stages) return 0;
    const std::vector<std::uint32_t>& stages = plan_.shape.stages;
    return static_cast<std::uint32_t>(std::upper_bound(stages.begin(), stages.end(), round) - stages.begin());
  }

  // Returns the range under one name: in place, input is a part of output.
  Operand resolved(Operand operand) const {
    if (operand.space != Space::input || !plan_.problem.in_place) return operand;
    operand.space = Space::output;
    operand.first = static_cast<std::uint32_t>(operand.first + shift_);
    return operand;
  }
  // Returns whether both operands hold the same value for a reader. A reduction scales its input when it reads it, so
  // names matter for reductions.
  bool same(const Operand& a, const Operand& b) const {
    if (reduces(plan_.problem.collective)) return a.is_memory() && a == b;
    return a.is_memory() && resolved(a) == resolved(b);
  }
  // Returns whether two ranges may share a unit. Sparse ranges count as contiguous.
  bool overlap(const Operand& a, const Operand& b) const {
    const Operand x = resolved(a);
    const Operand y = resolved(b);
    if (!x.is_memory() || x.space != y.space || x.count == 0 || y.count == 0) return false;
    const auto first_of = [](const Operand& range) {
      return static_cast<std::int32_t>(range.first);
    };  // May be negative in place.
    const auto length_of = [](const Operand& range) {
      return static_cast<std::int32_t>(range.unit(range.count - 1) - range.first);
    };
    return first_of(x) <= first_of(y) + length_of(y) && first_of(y) <= first_of(x) + length_of(x);
  }
  bool touches(const std::vector<Operand>& operands, const Operand& range) const {
    return std::any_of(operands.begin(), operands.end(),
                       [&](const Operand& operand) { return overlap(operand, range); });
  }
  static bool uses_lane(const std::vector<Operand>& operands, const Operand& lane) {
    return std::any_of(operands.begin(), operands.end(),
                       [&](const Operand& operand) { return same_lane(operand, lane); });
  }

  // Joins a copy to the step that left the copied value in the copy's source.
  void join_earlier(std::size_t index) {
    Draft& copy = drafts_[index];
    if (copy.sources.size() != 1 || !copy.sources[0].is_memory() || copy.fold == Fold::complete || stays(copy)) return;
    const Operand& source = copy.sources[0];
    for (std::size_t i = index; i-- > 0;) {
      Draft& earlier = drafts_[i];
      if (earlier.gone) continue;
      if (stays(earlier) || stage_of(earlier.round) != stage_of(copy.round)) return;
      if (leaves(earlier, source) && may_join(earlier, copy)) {
        add_targets(earlier, copy);
        copy.gone = true;
        return;
      }
      if (touches(earlier.targets, source) || hinders(earlier, copy)) return;
    }
  }

  // Returns whether `range` holds the value that `earlier` delivers.
  bool leaves(const Draft& earlier, const Operand& range) const {
    const auto is_it = [&](const Operand& operand) { return same(operand, range); };
    if (std::any_of(earlier.targets.begin(), earlier.targets.end(), is_it)) return true;
    return earlier.sources.size() == 1 && is_it(earlier.sources[0]) && !touches(earlier.targets, range);
  }

  // Returns whether `earlier` can also write the targets of the copy, without a conflict with its own operands.
  bool may_join(const Draft& earlier, const Draft& copy) const {
    for (const Operand& target : copy.targets) {
      const auto conflicts = [&](const Operand& operand) { return overlap(operand, target) && !same(operand, target); };
      if (is_lane(target) ? uses_lane(earlier.targets, target)
                          : std::any_of(earlier.sources.begin(), earlier.sources.end(), conflicts) ||
                                std::any_of(earlier.targets.begin(), earlier.targets.end(), conflicts)) {
        return false;
      }
    }
    return true;
  }

  void add_targets(Draft& earlier, const Draft& copy) const {
    for (const Operand& target : copy.targets) {
      const auto is_it = [&](const Operand& operand) { return same(operand, target); };
      if (std::none_of(earlier.targets.begin(), earlier.targets.end(), is_it)) earlier.targets.push_back(target);
    }
  }

  // Returns whether the targets of the copy must not be written before `step`.
  bool hinders(const Draft& step, const Draft& copy) const {
    return std::any_of(copy.targets.begin(), copy.targets.end(), [&](const Operand& target) {
      if (is_lane(target)) return uses_lane(step.targets, target);
      return touches(step.sources, target) || touches(step.targets, target);
    });
  }

  // Replaces the leftmost source of a fold by the sources of the earlier fold that produced it.
  void gather_earlier(std::size_t index) {
    Draft& later = drafts_[index];
    if (later.gone || later.sources.size() < 2 || stays(later)) return;
    const Operand partial = later.sources[0];
    for (std::size_t i = index; i-- > 0;) {
      Draft& earlier = drafts_[i];
      if (earlier.gone) continue;
      if (stays(earlier) || stage_of(earlier.round) != stage_of(later.round)) return;
      if (earlier.targets.size() == 1 && same(earlier.targets[0], partial)) {
        if (earlier.sources.size() < 2 || !may_gather(i, index)) return;
        later.sources.erase(later.sources.begin());
        later.sources.insert(later.sources.begin(), earlier.sources.begin(), earlier.sources.end());
        earlier.gone = true;
        return gather_earlier(index);  // The first of the new sources may also be a partial sum.
      }
      if (touches(earlier.targets, partial)) return;
    }
  }

  // Returns whether the two folds can be merged: no other step reads the partial sum, and no step between them changes
  // the sources of the earlier fold or receives on its lanes.
  bool may_gather(std::size_t from, std::size_t to) const {
    const Draft& earlier = drafts_[from];
    const Draft& later = drafts_[to];
    const Operand& partial = earlier.targets[0];
    for (std::size_t k = 1; k < later.sources.size(); ++k) {
      if (overlap(later.sources[k], partial)) return false;
    }
    for (std::size_t i = from + 1; i < to; ++i) {
      const Draft& between = drafts_[i];
      if (between.gone) continue;
      if (touches(between.sources, partial)) return false;
      for (const Operand& source : earlier.sources) {
        if (is_lane(source) ? uses_lane(between.sources, source) : touches(between.targets, source)) return false;
      }
    }
    for (const Operand& source :
         earlier.sources) {  // Within the merged step, reads and writes must match unit by unit.
      for (const Operand& target : later.targets) {
        if (overlap(source, target) && !same(source, target)) return false;
      }
    }
    const auto rewrites = [&](const Operand& target) { return same(target, partial); };
    if (std::any_of(later.targets.begin(), later.targets.end(), rewrites)) return true;
    return is_dead_after(to, partial);
  }

  // Returns whether no step reads this range of scratch after step `index`. Output is always live. Scratch that peers
  // may read is live too.
  bool is_dead_after(std::size_t index, const Operand& range) const {
    if (range.space != Space::scratch || holds_still_) return false;
    for (std::size_t i = index + 1; i < drafts_.size(); ++i) {
      if (drafts_[i].gone) continue;
      if (touches(drafts_[i].sources, range)) return false;
      const auto rewrites = [&](const Operand& target) { return same(target, range); };
      if (std::any_of(drafts_[i].targets.begin(), drafts_[i].targets.end(), rewrites)) return true;
    }
    return true;
  }

  void drop_dead_scratch() {
    for (std::size_t i = drafts_.size(); i-- > 0;) {
      Draft& draft = drafts_[i];
      if (draft.gone) continue;
      std::vector<Operand> kept;
      for (const Operand& target : draft.targets) {
        if (!is_dead_after(i, target)) kept.push_back(target);
      }
      // A message passed from lane to lane needs a memory operand for its length, so this store stays.
      const auto memory = [](const Operand& operand) { return operand.is_memory(); };
      const bool measured = std::any_of(draft.sources.begin(), draft.sources.end(), memory) ||
                            std::any_of(kept.begin(), kept.end(), memory);
      if (!kept.empty() && !measured) continue;
      if (!kept.empty()) draft.targets = kept;
      else if (std::none_of(draft.sources.begin(), draft.sources.end(), is_lane)) draft.gone = true;
    }
  }

  void write_back() {
    Steps steps(self_);
    std::vector<std::uint32_t> rounds{0};
    std::size_t next = 0;
    for (std::uint32_t round = 0; round < plan_.shape.rounds; ++round) {
      for (; next < drafts_.size() && drafts_[next].round == round; ++next) {
        Draft& draft = drafts_[next];
        if (draft.gone) continue;
        for (std::vector<Operand>* side : {&draft.sources, &draft.targets}) {
          for (Operand& operand : *side) operand.reserved = 1;  // The owner is set.
        }
        steps.add(draft.sources, draft.targets, draft.fold);
      }
      rounds.push_back(static_cast<std::uint32_t>(steps.size()));
    }
    plan_.steps = std::move(steps);
    plan_.rounds = std::move(rounds);
    if (across_ == Across::stages) plan_.shape.stages = {0};
  }

  Plan& plan_;
  const Across across_;
  const Rank self_;
  const std::int64_t shift_;
  std::vector<Draft> drafts_;
  bool holds_still_ = false;  // Some step stays in place, so peers may read scratch.
};

std::uint32_t stage_end(const Shape& shape, std::size_t stage) {
  return stage + 1 < shape.stages.size() ? shape.stages[stage + 1] : shape.rounds;
}

// Removes the rounds of a stage, which must have no steps.
void drop_stage(Plan& plan, std::size_t stage) {
  const std::uint32_t first = plan.shape.stages[stage];
  const std::uint32_t count = stage_end(plan.shape, stage) - first;
  plan.rounds.erase(plan.rounds.begin() + first, plan.rounds.begin() + first + count);
  plan.shape.stages.erase(plan.shape.stages.begin() + static_cast<std::ptrdiff_t>(stage));
  for (std::size_t i = stage; i < plan.shape.stages.size(); ++i) plan.shape.stages[i] -= count;
  plan.shape.rounds -= count;
}

// Moves all steps of this stage to the previous one in all plans. Returns false and changes nothing if any step cannot
// move.
bool join_stage(std::span<Plan> plans, std::size_t stage) {
  std::vector<Plan> joined;
  for (const Plan& plan : plans) {
    Plan autotuner = plan;
    autotuner.shape.stages.erase(autotuner.shape.stages.begin() + static_cast<std::ptrdiff_t>(stage));
    fuse(autotuner);
    if (autotuner.rounds[plan.shape.stages[stage]] != autotuner.rounds[stage_end(plan.shape, stage)]) return false;
    autotuner.shape.stages = plan.shape.stages;
    drop_stage(autotuner, stage);
    joined.push_back(std::move(autotuner));
  }
  std::move(joined.begin(), joined.end(), plans.begin());
  return true;
}

}  // namespace

void fuse(Plan& plan, Across across) { Fuser(plan, across).run(); }

void fuse_stages(std::span<Plan> plans) {
  for (std::size_t stage = 1; !plans.empty() && stage < plans[0].shape.stages.size();) {
    if (!join_stage(plans, stage)) ++stage;
  }
}

}  // namespace tutti
