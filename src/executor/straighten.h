// Prepares straight programs.
#pragma once

#include <span>
#include <vector>

#include "src/executor/run.h"

namespace tutti {

// Owns the arrays that a Straight points to.
struct StraightProgram {
  std::vector<std::uint32_t> stages = {0};
  std::vector<StraightStep> steps;
  std::vector<StraightLane> lanes;
  std::vector<StraightMemory> memory;
  bool ll = false;

  std::span<StraightLane> lanes_of(const StraightStep& step) {
    return std::span(lanes).subspan(step.lanes, std::size_t{step.receives} + step.sends);
  }
  std::span<StraightMemory> memory_of(const StraightStep& step) {
    return std::span(memory).subspan(step.memory, std::size_t{step.reads} + step.writes);
  }
  Straight view() const {
    if (stages.size() == 1) return {};
    const auto count = static_cast<std::uint32_t>(stages.size() - 1);
    return {stages.data(), steps.data(), lanes.data(), memory.data(), count, ll};
  }
};

struct StraightOptions {
  bool copies = false;   // Single sources are copied unchanged: nothing is scaled or divided.
  bool divides = false;  // Only complete folds change them, which divide. Thread blocks copy the others.
  // For thread blocks:
  // - LL messages are received where they are copied to.
  // - Adjacent steps that only copy from memory to lanes, or only from lanes to memory, become one step, if each lane
  //   has slots for its messages of as many chunks as are in transit between the first stage with messages and the
  //   last. No rank then waits forever: a rank in the earliest iteration never waits for a slot, because its readers
  //   have ended all earlier iterations. A step that follows a receive waits for it anyway. With `rounds`, they also
  //   become one step within a round, in Simple.
  // - Adjacent steps that only copy to scratch, or only from scratch, become one step.
  // - Units that are apart in memory are copied at once, or added or stored by switches, those of each length in
  //   one step. If all have one length, other steps fold them one after the other, without waiting in between.
  bool together = false;
  bool rounds = false;  // messages_cross_rounds() of the plans of all ranks.
  // Messages of [stored_back_bytes, stored_back_end_bytes) bytes are stored back into their slots.
  std::uint64_t stored_back_bytes = UINT64_MAX, stored_back_end_bytes = UINT64_MAX;

  bool copies_unchanged(Fold fold) const { return copies || (divides && fold == Fold::partial); }
};

// Returns an empty program if it is not straight. The result points into `program`, `launch` and launch.peers, whose
// addresses may change between calls.
StraightProgram straighten(const Program& program, const Launch& launch, StraightOptions options);

}  // namespace tutti
