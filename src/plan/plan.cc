#include "src/plan/plan.h"

#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

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

namespace {

// Replaces the operands of all steps: `append` adds to the last argument what replaces an operand of a step.
template <class Append>
void rewrite(Plan& plan, Append append) {
  Steps steps(plan.steps.self());
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step step = plan.steps[i];
    std::vector<Operand> sides[2];
    for (const bool target : {false, true})
      for (const Operand& operand : target ? step.targets : step.sources) append(operand, target, sides[target]);
    steps.add(sides[0], sides[1], step.fold);
  }
  plan.steps = std::move(steps);
}

}  // namespace

void expand_all_ranks(Plan& plan) {
  rewrite(plan, [&](const Operand& operand, bool, std::vector<Operand>& side) {
    if (!operand.is_of_several()) return side.push_back(at(operand.peer, operand));
    const RankRange owners = owners_of(operand, plan.problem, plan.steps.self());
    for (Rank rank = owners.first; rank < owners.end; ++rank) side.push_back(at(rank, operand));
  });
}

void renumber_tags(Plan& plan) {
  std::map<std::tuple<Space, Rank, bool>, std::set<std::uint16_t>> tags;
  rewrite(plan, [&](const Operand& operand, bool target, std::vector<Operand>& side) {
    if (!operand.is_memory()) tags[{operand.space, operand.peer, target}].insert(operand.tag);
    side.push_back(at(operand.peer, operand));
  });
  rewrite(plan, [&](const Operand& operand, bool target, std::vector<Operand>& side) {
    side.push_back(at(operand.peer, operand));
    if (operand.is_memory()) return;
    const std::set<std::uint16_t>& used = tags[{operand.space, operand.peer, target}];
    side.back().tag = static_cast<std::uint16_t>(std::distance(used.begin(), used.find(operand.tag)));
  });
}

}  // namespace tutti
