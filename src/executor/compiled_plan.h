// A plan bound to the lanes of one rank. Owns the arrays that its Program points to.
#pragma once

#include <functional>
#include <vector>

#include "src/executor/program.h"
#include "src/plan/plan.h"

namespace tutti {

class CompiledPlan {
 public:
  // Returns this rank's end of the lane or flag named by `operand`. `sends` selects the sending or the receiving end.
  using Bind = std::function<LaneState*(const Operand& operand, bool sends)>;

  CompiledPlan(const Plan& plan, const Bind& bind);
  // Neither copyable nor movable, because program_ points to its members.
  CompiledPlan(const CompiledPlan&) = delete;
  CompiledPlan& operator=(const CompiledPlan&) = delete;

  const Program& program() const { return program_; }
  std::uint32_t scratch_units() const { return scratch_units_; }
  // Returns whether it accesses buffers of peers, whose addresses ranks must exchange. For tests.
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
