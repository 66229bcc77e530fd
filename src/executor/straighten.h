// Works out beforehand what a straight run needs to know.
#pragma once

#include <vector>

#include "src/executor/run.h"

namespace tutti {

// Owns what a Straight points to.
struct StraightProgram {
  std::vector<StraightStep> steps;
  std::vector<StraightOperand> operands;
  std::vector<StraightRelease> releases;
  Straight view() const {
    return {steps.data(), operands.data(), releases.data(), static_cast<std::uint32_t>(steps.size())};
  }
};

// Empty, with no steps, if the program is not straight. `copies`: what has one source is copied as it is; nothing
// scales or divides it. Points into `program`, `launch` and launch.peers, whose addresses may change from call to call.
StraightProgram straighten(const Program& program, const Launch& launch, bool copies);

}  // namespace tutti
