#include "src/executor/compiled_plan.h"

#include <algorithm>

#include "src/base/status.h"

namespace tutti {
namespace {

Fold fold_by_switches(Fold fold, bool from_all, bool to_all) {
  if (!from_all) return Fold::to_all;
  TUTTI_ASSERT(fold == Fold::complete || !to_all);
  if (fold != Fold::complete) return Fold::partial_from_all;
  return to_all ? Fold::among_all : Fold::from_all;
}

}  // namespace

CompiledPlan::CompiledPlan(const Plan& plan, const Bind& bind)
    : rounds_(plan.rounds), stages_(plan.shape.stages), scratch_units_(plan.shape.scratch) {
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Step step = plan.steps[s];
    bool data = false;
    bool lanes = false;
    bool flags = false;
    std::uint32_t sources = 0, targets = 0;  // With data.
    bool from_all = false;
    bool to_all = false;
    for (const auto& [side, sends] : {std::pair(step.sources, false), std::pair(step.targets, true)}) {
      for (Operand operand : side) {
        if (operand.space != Space::flag) ++(sends ? targets : sources);
        if (operand.is_memory()) {
          // `reserved` marks peers' memory, so that the interpreter need not compare ranks.
          operand.reserved = operand.peer != plan.steps.self();
          mapped_ = mapped_ || (operand.reserved != 0 && operand.space != Space::scratch);
          data = true;
          if (operand.is_of_several()) {
            TUTTI_ASSERT(operand.space != (sends ? Space::input : Space::output));  // See fold_of_buffers().
            (sends ? to_all : from_all) = true;
            operand.peer = plan.problem.ranks;
          }
        } else {
          (operand.space == Space::flag ? flags : lanes) = true;
          operand.first = lane_index(bind(operand, sends));
        }
        operands_.push_back(operand);
      }
    }
    const bool by_switches = from_all || to_all;
    TUTTI_ASSERT(!by_switches || (sources == 1 && targets == 1));  // See thread_block_switch().
    TUTTI_ASSERT(data || !lanes);  // The length of a message follows from a memory operand.
    const auto first = static_cast<std::uint32_t>(operands_.size() - step.sources.size() - step.targets.size());
    steps_.push_back({.first = first,
                      .sources = static_cast<std::uint16_t>(step.sources.size()),
                      .targets = static_cast<std::uint16_t>(step.targets.size()),
                      .fold = by_switches ? fold_by_switches(step.fold, from_all, to_all) : step.fold,
                      .flags_only = !data,
                      .flags = flags});
    program_.widest =
        std::max(program_.widest, static_cast<std::uint32_t>(std::max(step.sources.size(), step.targets.size())));
  }
  stages_.push_back(plan.shape.rounds);
  program_.steps = steps_.data();
  program_.operands = operands_.data();
  program_.rounds = rounds_.data();
  program_.stages = stages_.data();
  program_.lanes = lanes_.data();
  program_.stage_count = plan.shape.rounds == 0 ? 0 : static_cast<std::uint32_t>(plan.shape.stages.size());
  program_.units = plan.shape.units;
}

std::uint32_t CompiledPlan::lane_index(LaneState* lane) {
  TUTTI_ASSERT(lane != nullptr);
  const auto found = std::find(lanes_.begin(), lanes_.end(), lane);
  const auto index = static_cast<std::uint32_t>(found - lanes_.begin());
  if (found == lanes_.end()) lanes_.push_back(lane);
  return index;
}

}  // namespace tutti
