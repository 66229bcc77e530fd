// Merges adjacent steps of a rank into receive-reduce-send and multi-target steps, which saves passes over memory.
#pragma once

#include <span>

#include "src/plan/plan.h"

namespace tutti {

// Range within which steps may be merged. All ranks must use the same value.
enum class Across : std::uint8_t {
  rounds,  // Within a stage: correct for every loop.
  // Across stages too. The plan becomes one stage, so chunks do not overlap. Used by tests and `tutti plan`. The
  // library uses fuse_stages() instead, which merges what it can and keeps the stages that overlap.
  stages,
};

// Merges the steps of one rank; needs no other rank's plan. Applies three merges until none is possible:
// - A step that only copies a range joins the earlier step that wrote the same value to this range, or copied it from
//   there. The copy's targets are appended to the earlier step. No step in between may write the range, touch the
//   copy's memory targets, or send on its lanes (messages keep their order). A send may move forward, a receive never
//   does. A plan without deadlock stays so with enough slots, but may need more of them (a fused ring needs 2), and its
//   rounds are no longer balanced.
// - A fold whose leftmost source is the result of an earlier fold, and is read by no other step, takes over the sources
//   of the earlier fold. The order of additions ((a + b) + c) and the resulting bits stay the same. The earlier receive
//   moves back, past steps that neither receive on its lanes nor touch its memory. Other orders are not merged.
// - A store to scratch that no later step reads is removed.
//
// Steps with a flag or with a peer's memory stay in place, and no step moves past them.
void fuse(Plan& plan, Across across = Across::rounds);

// Removes stages from the plans of all ranks, for skewed loops. Call it after fuse(). If every step of a stage can join
// the previous stage on every rank, the steps move there and the stage is removed. Otherwise the stage stays unchanged:
// if a part of it stayed on some ranks, messages would cross a stage border that these ranks still have. With the
// earliest stage first, they would then be sent in another order than they are received.
void fuse_stages(std::span<Plan> plans);

}  // namespace tutti
