// One rank's part of an algorithm, materialised: what executors, the verifier and the printer read.
#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/algorithm.h"

namespace tutti {

struct Plan {
  Problem problem;
  Shape shape;                        // After fuse(), rounds and stages may be fewer.
  Steps steps{0};                     // All of this rank's, round after round.
  std::vector<std::uint32_t> rounds;  // shape.rounds + 1 entries: round r is steps [rounds[r], rounds[r + 1]).
};

// The part of `self`, as the algorithm wrote it.
Plan emit_plan(const Algorithm& algorithm, const Problem& problem, Rank self);
// The parts of all ranks.
std::vector<Plan> emit_plans(const Algorithm& algorithm, const Problem& problem);

}  // namespace tutti
