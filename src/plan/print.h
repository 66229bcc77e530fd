// Plans as text: one line per step, or a Graphviz drawing of all ranks.
#pragma once

#include <span>
#include <string>

#include "src/plan/plan.h"

namespace tutti {

// Returns, for example, "output[3..5]", "input[0] of rank 2", "scratch[1] of all ranks", "scratch[1..2, +4..] (6)",
// "lane 3 tag 1" or "flag 3". `self` owns the step.
std::string describe(const Operand& operand, Rank self);
// Returns, for example, "lane 3 + input[4] -> output[4], lane 5 (complete)".
std::string describe(const Step& step, Rank self);

// Returns all stages, rounds and steps of one rank.
std::string print(const Plan& plan);

// Returns a drawing of all ranks: a column of steps per rank, a row per round, an edge per message and signal.
std::string graphviz(std::span<const Plan> plans);

}  // namespace tutti
