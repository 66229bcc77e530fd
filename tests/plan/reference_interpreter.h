// Reference interpreter: runs plans with values, in random schedules. It shares no code with the verifier, so that each
// can detect mistakes of the other.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "src/plan/loop.h"
#include "src/plan/plan.h"

namespace tutti::test {

struct ReferenceResult {
  bool ok = true;
  std::string text;  // First error and its location; empty if ok.
};

// Runs several consecutive operations of all ranks. `seed` determines the schedule, which interleaves single operands,
// and the sizes of units, which differ and may be 0. Lanes have `loop.slots` slots.
// - Between operations, the caller of each rank checks that no other rank has written its input and output, and
//   overwrites both and the rank's scratch.
// - Reductions scale values read from the input (like pre-multiplied sums) and results of complete folds (like
//   averages), so each must happen exactly once. Hashes of expressions show whether ranks have equal bits. The result
//   holds for one schedule only, so tests need many seeds.
ReferenceResult run_reference(std::span<const Plan> plans, const Loop& loop, std::uint64_t seed);

}  // namespace tutti::test
