// Works out beforehand what a straight run needs to know.
#pragma once

#include <vector>

#include "src/executor/run.h"

namespace tutti {

// Owns what a Straight points to.
struct StraightProgram {
  std::vector<std::uint32_t> stages = {0};
  std::vector<StraightStep> steps;
  std::vector<StraightLane> lanes;
  std::vector<StraightMemory> memory;
  bool ll = false;
  Straight view() const {
    if (stages.size() == 1) return {};
    const auto count = static_cast<std::uint32_t>(stages.size() - 1);
    return {stages.data(), steps.data(), lanes.data(), memory.data(), count, ll};
  }
};

struct StraightOptions {
  bool copies = false;  // What has one source is copied as it is; nothing scales or divides it.
  // Messages of so many are stored back into their slots, and from `end` on not.
  std::uint64_t stored_back_bytes = UINT64_MAX, stored_back_end_bytes = UINT64_MAX;
};

// Empty if the program is not straight. Points into `program`, `launch` and launch.peers, whose addresses may change
// from call to call.
StraightProgram straighten(const Program& program, const Launch& launch, StraightOptions options);

}  // namespace tutti
