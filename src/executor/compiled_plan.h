// A plan bound to the lanes of one rank: owns what a Program points to.
#pragma once

#include <functional>
#include <vector>

#include "src/executor/program.h"
#include "src/plan/plan.h"

namespace tutti {

class CompiledPlan {
 public:
  // The end of the lane or flag that an operand names, as source (receiving) or target (sending).
  using Bind = std::function<LaneState*(const Operand& operand, bool sends)>;

  CompiledPlan(const Plan& plan, const Bind& bind);
  // Not movable: the program points into it.
  CompiledPlan(const CompiledPlan&) = delete;
  CompiledPlan& operator=(const CompiledPlan&) = delete;

  const Program& program() const { return program_; }
  std::uint32_t scratch_units() const { return scratch_units_; }
  bool uses_mapped_memory() const { return mapped_; }

 private:
  std::uint32_t lane_index(LaneState* lane);

  std::vector<Instruction> steps_;
  std::vector<Operand> operands_;
  std::vector<std::uint32_t> rounds_, stages_;
  std::vector<LaneState*> lanes_;
  std::uint32_t scratch_units_;
  bool mapped_ = false;
  Program program_;
};

}  // namespace tutti
