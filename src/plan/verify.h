// Proves that a plan computes its collective: one symbolic run of all ranks, with expressions instead of numbers.
#pragma once

#include <cstdint>
#include <span>

#include "src/base/status.h"
#include "src/plan/loop.h"
#include "src/plan/plan.h"

namespace tutti {

struct Proof {
  std::uint32_t slots = 1;     // K: with fewer slots per lane, and messages of one slot, the plan deadlocks.
  std::uint32_t longest = 0;   // Units of the longest message.
  std::uint64_t messages = 0;  // Of one piece, over all ranks.
  bool drained = true;         // Every stage leaves all lanes empty: K then holds for any skew.
  // Every round leaves all lanes empty, and steps of a round share memory only position by position: messages may be
  // cut into any number of slices.
  bool balanced = true;
};

// Slots per lane that suffice for messages of up to `longest` slots.
inline std::uint32_t slots_needed(const Proof& proof, std::uint32_t longest) {
  return proof.balanced ? proof.slots : proof.slots * longest;
}
// Whether lanes of `loop.slots` suffice. verify() does not ask this: it is how one learns K.
inline bool suffices(const Proof& proof, const Loop& loop) { return slots_needed(proof, loop.longest) <= loop.slots; }

// `plans`: all ranks', in order, as they will be obeyed (after fuse). What is proved for `loop`:
// - every output unit ends as the collective demands, from this operation's and this piece's input; no contribution
//   is missing or in twice; nothing is read before it is written; input is never written;
// - ranks of an all_reduce end with the same expression tree, hence the same bits; Fold::complete marks exactly the
//   folds that finish what ends in outputs;
// - each lane and flag has one writer and one reader, both ends agree on the units of each message, every message
//   sent in a piece is received in it, and there is no deadlock;
// - where peers' memory is mapped or stages are strands: no two accesses of a unit race, however ranks are scheduled;
//   a rank's entry and return count as writes of its caller to all its input and output;
// - scratch is never overwritten by a later piece or operation while it is needed, with `loop.banks` copies.
// Lanes are FIFOs with blocking semantics and nothing chooses by arrival order, so one run decides for all schedules,
// for more slots, and for more pieces than `loop.pieces` at the same skew.
// A failure names rank, piece, round and step, and says what is missing, doubled, unwritten, blocked or racing.
Result<Proof> verify(std::span<const Plan> plans, const Loop& loop = {});

}  // namespace tutti
