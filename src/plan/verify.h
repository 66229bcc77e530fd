// Proves that a plan computes its collective: one symbolic run of all ranks, with expressions instead of numbers.
#pragma once

#include <cstdint>
#include <span>

#include "src/base/status.h"
#include "src/plan/loop.h"
#include "src/plan/plan.h"

namespace tutti {

struct Proof {
  std::uint32_t slots = 1;     // K: with fewer slots per lane the plan deadlocks, with as many it does not.
  std::uint32_t longest = 0;   // Units of the longest message.
  std::uint64_t messages = 0;  // Of one chunk, over all ranks.
  // Where messages round: the most that the mean square of an output's error is of what one rounding of the output
  // would make it, if all terms are alike but for their sign. Roundings of the same number count once.
  double rounded = 0;
  bool drained = true;  // Every stage leaves all lanes empty: K then holds for any skew.
  // Messages may take several slots, a slice in each: every round leaves all lanes empty, and its steps share memory
  // only position by position. Otherwise every message must fit one slot, or slices of different messages would mix,
  // which no number of slots mends: cut the call into chunks until it does (longest_message(), chunks of every unit).
  bool balanced = true;
};

// Whether the loop may run the plan: its slots are enough, and its longest message is one slice or may be several.
// verify() does not ask this: it is how one autotunes K.
inline bool suffices(const Proof& proof, const Loop& loop) {
  return proof.slots <= loop.slots && (proof.balanced || loop.longest <= 1);
}

// `plans`: all ranks', in order, as they will be obeyed (after fuse). What is proved for `loop`:
// - every output unit ends as the collective demands, from this operation's and this chunk's input; no contribution
//   is missing or in twice; nothing is read before it is written; input is never written;
// - ranks of an all_reduce end with the same expression tree, hence the same bits; Fold::complete marks exactly the
//   folds that finish what ends in outputs;
// - each lane and flag has one writer and one reader, both ends agree on the units of each message, every message
//   sent in a chunk is received in it, and there is no deadlock;
// - where peers' memory is mapped: no two accesses of a unit race, however ranks are scheduled, nor does an access race
//   with one of the next operation; a rank's entry and return count as writes of its caller to all its input and
//   output.
// Lanes are FIFOs with blocking semantics and nothing chooses by arrival order, so one run decides for all schedules,
// for more slots, and for more chunks than `loop.chunks` at the same skew.
// A failure names rank, chunk, round and step, and says what is missing, doubled, unwritten, blocked or racing.
// `rounded`: messages carry numbers rounded (src/wire), which is a node of the expression; what was rounded once stays
// as it is. Then the ranks of an all_gather and a broadcast, too, end with the same, but for what lies in place.
enum class Messages : std::uint8_t { exact, rounded };
Result<Proof> verify(std::span<const Plan> plans, const Loop& loop = {}, Messages messages = Messages::exact);

}  // namespace tutti
