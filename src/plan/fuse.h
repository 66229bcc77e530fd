// Merges neighbouring steps of a rank: receive-reduce-send and n-way fan-out instead of passes through memory.
#pragma once

#include <span>

#include "src/plan/plan.h"

namespace tutti {

// How far apart merged steps may be. All ranks must fuse with the same choice.
enum class Across : std::uint8_t {
  rounds,  // Within a stage: right under every loop.
  // Across stages too. The plan becomes one stage, so no chunks overlap. Tests and `tutti plan` use it, the library
  // does not: fuse_stages() merges what it can and keeps the stages that overlap.
  stages,
};

// Local to a rank: needs no other plan. Three merges, until none applies:
// - a step that only copies a range joins the earlier step that left the same value in that range (or copied it from
//   there): its targets are appended. Right if no step between writes the range, touches the copy's memory targets,
//   or sends on its lanes (messages keep their order). A send becomes earlier, never a receive: what was free of
//   deadlock stays so with enough slots, but may need more of them (a fused ring 2), and rounds are no longer balanced.
// - a fold whose leftmost source is the range that an earlier fold wrote, and that only it reads, takes that fold's
//   sources in its place: the additions stay ((a + b) + c), so the bits do. The earlier receive becomes later, past
//   steps that neither receive on its lanes nor touch its memory. Other orders are not merged.
// - a store to scratch that nothing reads later goes.
// Steps that hold a flag or a peer's memory stay where they are, and nothing moves past them.
void fuse(Plan& plan, Across across = Across::rounds);

// For skewed loops, with all ranks' plans at hand, after fuse(): where every step of a stage can join the
// stage before on every rank, it does, and the stage goes. Merges that would leave part of the later stage on any rank
// are not made: their messages would cross a border that some ranks still run_plan (with the earliest stage first, in
// another order than they are received).
void fuse_stages(std::span<Plan> plans);

}  // namespace tutti
