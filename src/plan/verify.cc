#include "src/plan/verify.h"

#include <algorithm>

#include "src/plan/verify_program.h"
#include "src/plan/verify_run.h"

namespace tutti {
namespace {

// Returns the shortest run that decides. Each chunk has its own part of input and output, and of scratch unless that is
// reused. Chunks and skew therefore matter in three cases only: ranks access each other's memory, messages stay in
// lanes beyond the end of a stage, or stages of different chunks share scratch. In these cases the run has enough
// chunks to keep all stages busy while scratch is reused. Ranks that access each other's memory may be one operation
// ahead of their peers, so the run has two operations.
Span span_of(const CellProgram& program, const Loop& loop, Messages messages) {
  const std::uint32_t lag = loop.skew * (program.stages() - 1);
  Span span{.operations = program.mapped ? 2u : 1u,
            .chunks = 1,
            .ring = 1,
            .races = program.mapped,
            .rounded = messages == Messages::rounded};
  const bool reuses = loop.ring > 0 && program.user_cells < program.all_cells;
  if (program.mapped || (lag > 0 && (reuses || !program.drained)))
    span.chunks = std::min(std::max(loop.chunks, 1u), lag + loop.ring + 3);
  span.ring = reuses ? std::min(loop.ring, span.chunks) : span.chunks;
  return span;
}

}  // namespace

Result<Proof> verify(std::span<const Plan> plans, const Loop& loop, Messages messages) {
  const CellProgram program = TUTTI_TRY(compile(plans));
  Run run(program, loop, span_of(program, loop, messages));
  TUTTI_CHECK_OK(run.execute());
  return Proof{.slots = run.slots(),
               .longest = program.longest,
               .messages = program.messages,
               .rounded = run.rounded(),
               .drained = program.drained,
               .balanced = program.balanced};
}

std::uint32_t min_ring(std::span<const Plan> plans, Loop loop) {
  for (loop.ring = 1; loop.ring <= 16; ++loop.ring) {
    if (verify(plans, loop).ok()) return loop.ring;
  }
  return 0;
}

}  // namespace tutti
