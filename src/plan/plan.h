// The steps of one rank in an algorithm. Executors, the verifier and the printer read plans.
#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/algorithm.h"

namespace tutti {

struct Plan {
  Problem problem;
  Shape shape;                        // fuse() may reduce rounds and stages.
  Steps steps{0};                     // All steps of this rank, in the order of rounds.
  std::vector<std::uint32_t> rounds;  // shape.rounds + 1 entries: round r has the steps [rounds[r], rounds[r + 1]).
};

// Returns the plan of `self`, not fused.
Plan emit_plan(const Algorithm& algorithm, const Problem& problem, Rank self);
// Returns the plans of all ranks, not fused.
std::vector<Plan> emit_plans(const Algorithm& algorithm, const Problem& problem);

// Replaces operands in memory of all ranks, or of all ranks of a host, by one operand for each rank, in order of rank,
// for executors without switches. Call it after verify(), which allows any order of additions in the original plan
// only, and before mapped_plan(), after which the ranks of a host need not be consecutive.
void expand_all_ranks(Plan& plan);

// Renumbers the tags of lanes and flags: those from one rank to another get tags 0, 1, ... in the order of their tags,
// which both ends know. Plans of all algorithms then share few lanes. Only for lanes without partners (LaneForm).
void renumber_tags(Plan& plan);

}  // namespace tutti
