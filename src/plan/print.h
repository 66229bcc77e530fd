// Plans as text for people: one line per step, or a drawing of all ranks in Graphviz's language.
#pragma once

#include <span>
#include <string>

#include "src/plan/plan.h"

namespace tutti {

// "output[3..5]", "input[0] of rank 2", "scratch[1..2, +4..] (6)", "lane 3 tag 1", "flag 3". `self` owns the step.
std::string describe(const Operand& operand, Rank self);
// "lane 3 + input[4] -> output[4], lane 5 (complete)"
std::string describe(const Step& step, Rank self);

// All stages, rounds and steps of one rank.
std::string print(const Plan& plan);

// All ranks: a column of steps for each rank, a row for each round, an edge for each message and signal.
std::string graphviz(std::span<const Plan> plans);

}  // namespace tutti
