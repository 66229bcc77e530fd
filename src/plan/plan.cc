#include "src/plan/plan.h"

#include "src/base/status.h"

namespace tutti {

Plan emit_plan(const Algorithm& algorithm, const Problem& problem, Rank self) {
  TUTTI_ASSERT(self < problem.ranks && algorithm.supports(problem));
  Plan plan{.problem = problem, .shape = algorithm.shape(problem), .steps = Steps(self), .rounds = {0}};
  plan.rounds.reserve(plan.shape.rounds + 1);
  for (std::uint32_t round = 0; round < plan.shape.rounds; ++round) {
    algorithm.emit(problem, self, round, plan.steps);
    plan.rounds.push_back(static_cast<std::uint32_t>(plan.steps.size()));
  }
  return plan;
}

std::vector<Plan> emit_plans(const Algorithm& algorithm, const Problem& problem) {
  std::vector<Plan> plans;
  plans.reserve(problem.ranks);
  for (Rank rank = 0; rank < problem.ranks; ++rank) plans.push_back(emit_plan(algorithm, problem, rank));
  return plans;
}

void expand_all_ranks(Plan& plan) {
  Steps steps(plan.steps.self());
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step step = plan.steps[i];
    std::vector<Operand> sides[2];
    for (const bool target : {false, true}) {
      for (const Operand& operand : target ? step.targets : step.sources) {
        const bool all = operand.is_memory() && operand.peer == kAllRanks;
        for (Rank rank = 0; rank < (all ? plan.problem.ranks : 1); ++rank)
          sides[target].push_back(at(all ? rank : operand.peer, operand));
      }
    }
    steps.add(sides[0], sides[1], step.fold);
  }
  plan.steps = std::move(steps);
}

}  // namespace tutti
