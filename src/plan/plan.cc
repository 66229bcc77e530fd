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

}  // namespace tutti
