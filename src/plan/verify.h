// Proves that a plan computes its collective, by a symbolic run of all ranks with expressions instead of numbers.
#pragma once

#include <cstdint>
#include <span>

#include "src/base/status.h"
#include "src/plan/loop.h"
#include "src/plan/plan.h"

namespace tutti {

struct Proof {
  std::uint32_t slots = 1;     // K: the plan deadlocks with fewer slots per lane, and does not with this many.
  std::uint32_t longest = 0;   // Units of the longest message.
  std::uint64_t messages = 0;  // Messages of one chunk, over all ranks.
  // With compression: maximum mean square error of an output, relative to the error of rounding the output once, if all
  // terms differ only in sign. Repeated roundings of the same number count once.
  double rounded = 0;
  bool drained = true;  // Every stage leaves all lanes empty, so K holds for any skew.
  // Messages may take several slots, one per slice: every round leaves all lanes empty, and its steps share memory only
  // position by position. If false, every message must fit one slot: otherwise slices of different messages would mix,
  // with any number of slots. Then cut the call into more chunks (see longest_message()).
  bool balanced = true;
};

// Returns whether the loop can run the plan: it has enough slots, and its longest message is one slice or may be
// several. verify() does not check this, since callers use it to determine K.
inline bool suffices(const Proof& proof, const Loop& loop) {
  return proof.slots <= loop.slots && (proof.balanced || loop.longest <= 1);
}

// Verifies the plans of all ranks, in order of rank, as they will be executed (after fuse). Proves for `loop`:
// - Every output unit ends as the collective demands, from the input of this operation and chunk. No contribution is
//   missing or duplicated; no unit is read before it is written; input is never written.
// - The ranks of an all_reduce end with the same expression tree, hence the same bits. Fold::complete marks exactly the
//   folds that complete values of outputs.
// - Each lane and flag has one writer and one reader. Both ends agree on the units of each message. Every message sent
//   in a chunk is received in this chunk. There is no deadlock.
// - With mapped memory of peers: no two accesses of a unit race, for any scheduling of ranks, neither within an
//   operation nor with the next one. Entry and return of a rank count as writes of its caller to all its input, output
//   and scratch.
// - Scratch may be reused as `loop.ring` says.
//
// Lanes are blocking FIFOs, and no rank depends on the order of arrival. One run therefore decides for all schedules,
// for more slots, and for more chunks than `loop.chunks` at the same skew. If chunks reuse scratch, it decides for more
// chunks if there are loop.skew * (stages - 1) + loop.ring + 3 or more. An error names rank, chunk, round and step, and
// the defect: missing, doubled, unwritten, blocked or racing.
//
// `rounded`: messages are compressed, and rounding is a node of the expression. Rounding a rounded value does not
// change it. In this mode the ranks of an all_gather and a broadcast must also end with the same bits, except for data
// in place.
enum class Messages : std::uint8_t { exact, rounded };
Result<Proof> verify(std::span<const Plan> plans, const Loop& loop = {}, Messages messages = Messages::exact);

// Returns the minimum Loop::ring with which this loop can run the plans; 0: not even with 16.
std::uint32_t min_ring(std::span<const Plan> plans, Loop loop);

}  // namespace tutti
