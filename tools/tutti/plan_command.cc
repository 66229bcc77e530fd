#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "src/plan/fuse.h"
#include "src/plan/plan.h"
#include "src/plan/print.h"
#include "src/plan/verify.h"
#include "tools/tutti/commands.h"
#include "tools/tutti/names.h"
#include "tools/tutti/request.h"

namespace tutti::tool {

namespace {

constexpr Rank kMaxRanksOfRing = 16;  // The proof of more ranks takes long.

Result<const Algorithm*> find_algorithm(const Request& request) {
  const Algorithm* algorithm = find(*request.collective, request.algorithm);
  if (algorithm == nullptr) return no_such_algorithm(request.algorithm, request.collective);
  return algorithm;
}

bool accesses_peers_scratch(const Plan& plan) {
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    for (const Operand& operand : plan.steps[i].sources) {
      if (operand.space == Space::scratch && operand.peer != plan.steps.self()) return true;
    }
  }
  return false;
}

// Prints after how many chunks scratch may be reused, if peers access it.
void print_ring(const std::vector<Plan>& plans) {
  if (std::none_of(plans.begin(), plans.end(), accesses_peers_scratch)) return;
  Loop loop{.chunks = 16, .skew = 1, .order = StageOrder::latest_first};
  const std::uint32_t latest = min_ring(plans, loop);
  loop.order = StageOrder::earliest_first;
  std::printf("chunks reuse scratch: ring of %u chunks (latest stage first) or %u (earliest stage first)\n", latest,
              min_ring(plans, loop));
}

Status check_groups(const Algorithm& algorithm, const Problem& problem) {
  if (!problem.groups.empty() || !requires_hosts(algorithm, problem.collective)) return {};
  return invalid_argument(std::string(algorithm.name()) +
                          " works across hosts: give --groups, the ranks of each host, such as 3+5 or 2x4");
}

}  // namespace

Status plan_command(int argc, char** argv) {
  const Request request = TUTTI_TRY(parse_request(describe_plan(), argc, argv));
  const Algorithm* algorithm = TUTTI_TRY(find_algorithm(request));
  const Problem problem = problem_of(request, request.ranks.front());
  TUTTI_CHECK_OK(check_groups(*algorithm, problem));
  if (!algorithm->supports(problem)) {
    return unsupported(std::string(algorithm->name()) + " does not support " + describe(problem));
  }
  if (!request.dot) std::printf("%s: %s\n", algorithm->name(), algorithm->summary());
  if (request.rank && !request.fused && !request.dot) {
    std::fputs(print(emit_plan(*algorithm, problem, *request.rank)).c_str(), stdout);
    return {};
  }
  std::vector<Plan> plans = emit_plans(*algorithm, problem);
  if (request.fused) {
    for (Plan& plan : plans) fuse(plan);
    fuse_stages(plans);
  }
  if (request.dot) {
    std::fputs(graphviz(plans).c_str(), stdout);
    return {};
  }
  for (Rank rank = 0; rank < plans.size(); ++rank) {
    if (request.rank.value_or(rank) == rank) std::fputs(print(plans[rank]).c_str(), stdout);
  }
  if (problem.ranks <= kMaxRanksOfRing) print_ring(plans);
  return {};
}

}  // namespace tutti::tool
