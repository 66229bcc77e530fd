// The reference interpreter of plans: runs them with numbers, under random schedules. It shares no code with the
// verifier, so that each can detect mistakes of the other.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "src/plan/loop.h"
#include "src/plan/plan.h"

namespace tutti::test {

struct RefereeResult {
  bool ok = true;
  std::string text;  // The first error and its place; empty when ok.
};

// Runs several operations in a row, with all ranks' plans, interleaved by a schedule drawn from `seed`: operand
// by operand, on lanes of `loop.slots` slots, with blocks whose units have unequal, sometimes no elements.
// - Between operations each rank's caller overwrites all its input and output and checks that no other rank did.
// - A reduction scales what it reads from input (as a pre-multiplied sum) and what a complete fold gives (as an
//   average of several ranks), so both must happen exactly once. A hash of every expression shows whether ranks have
//   the same bits.
// `ok` applies to this schedule only; a meaningful test needs many seeds.
RefereeResult referee_run(std::span<const Plan> plans, const Loop& loop, std::uint64_t seed);

}  // namespace tutti::test
