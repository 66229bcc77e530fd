#include "src/executor/program_messages.h"

#include <algorithm>
#include <map>

namespace tutti {

bool has_ll_messages(const Program& program) {
  return std::ranges::any_of(program.all_steps(), [&](const Instruction& step) {
    return std::ranges::any_of(program.operands_of(step), [&](const Operand& end) {
      return end.space == Space::lane && has_inline_flags(program.lanes[end.first]->view.protocol);
    });
  });
}

bool has_slots(const Program& program, const Loop& loop) {
  std::map<const LaneState*, std::uint64_t> messages;  // Per chunk.
  std::uint32_t first = program.stage_count, last = 0;
  for (std::uint32_t stage = 0; stage < program.stage_count; ++stage) {
    for (const Instruction& step : program.steps_of(stage)) {
      for (const Operand& end : program.operands_of(step)) {
        if (end.space != Space::lane) continue;
        ++messages[program.lanes[end.first]];
        first = std::min(first, stage);
        last = stage;
      }
    }
  }
  const std::uint32_t stages = std::min(last + 1, program.stage_count - 1) - std::min(first, last);
  const std::uint64_t apart = std::uint64_t{loop.skew} * stages + 1;
  const std::uint64_t chunks = std::min<std::uint64_t>(loop.chunks, apart);
  return std::all_of(messages.begin(), messages.end(), [&](const auto& lane) {
    const LaneView& view = lane.first->view;
    return view.form == LaneForm::one_way && lane.second * chunks <= 1U << view.slot_shift;
  });
}

}  // namespace tutti
