#include "src/plan/verify.h"

#include <algorithm>

#include "src/plan/verify_program.h"
#include "src/plan/verify_run.h"

namespace tutti {
namespace {

// As little of the loop as decides. Pieces have units of their own, so where ranks share nothing but lanes and all of
// them are empty at the end of each stage, chunks and skew change nothing that matters, nor does scratch of which each
// chunk has a bank. Otherwise run until all stages are at work and every bank has been used again; and over two
// operations or more where peers may be ahead by one.
Span span_of(const CellProgram& program, const Loop& loop, Messages messages) {
  const std::uint32_t later_stages = program.stages() - 1;
  const bool strands = loop.strands && later_stages > 0;
  const bool scratch = program.plans[0].shape.scratch > 0 && loop.banks < loop.chunks;
  const bool overlap = loop.skew > 0 && later_stages > 0 && (scratch || !program.drained);
  Span span{.operations = 1,
            .chunks = 1,
            .banks = loop.banks,
            .strands = strands ? program.stages() : 1,
            .races = program.mapped || strands,
            .rounded = messages == Messages::rounded};
  if (span.races || overlap) {
    const std::uint32_t lag = strands ? later_stages : loop.skew * later_stages;
    span.chunks = std::min(std::max(loop.chunks, 1u), lag + loop.banks + 2);
  }
  if (program.mapped) span.operations = std::max(2u, (loop.banks + 1) / span.chunks + 1);
  return span;
}

}  // namespace

Result<Proof> verify(std::span<const Plan> plans, const Loop& loop, Messages messages) {
  if (loop.banks == 0) return internal_error("a loop needs at least one bank of scratch");
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

}  // namespace tutti
