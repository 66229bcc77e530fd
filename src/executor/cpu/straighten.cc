#include "src/executor/straighten.h"

#include <optional>

namespace tutti {
namespace {

class Straightener {
 public:
  Straightener(const Program& program, const Launch& launch, bool copies)
      : program_(program), launch_(launch), copies_(copies) {}

  // False: it is not straight.
  bool add(const Instruction& step) {
    const Operand* operands = program_.operands + step.first;
    StraightStep made{.first = static_cast<std::uint32_t>(result_.operands.size()), .fold = step.fold};
    for (std::uint32_t k = 0; k < std::uint32_t{step.sources} + step.targets; ++k) {
      if (!operands[k].is_memory()) continue;
      const auto all = whole(operands[k]);
      if (!all || all->count > launch_.slice_elements) return false;
      made.count = all->count;
    }
    made.bytes = made.count * launch_.element_bytes;
    const bool silent = made.count == 0 && !launch_.even_if_empty;
    bool reads_memory = false;
    for (std::uint32_t k = 0; k < step.sources; ++k) {
      if (silent && operands[k].place != Place::flag) continue;
      reads_memory = operands[k].is_memory();
      add_source(operands[k], made);
    }
    const bool copies = copies_ && made.inputs == 1 && reads_memory;
    for (std::uint32_t k = step.sources; k < std::uint32_t{step.sources} + step.targets; ++k) {
      if (!silent || operands[k].place == Place::flag) add_target(operands[k], copies, made);
    }
    made.operands = static_cast<std::uint16_t>(result_.operands.size() - made.first);
    add_releases(made);
    if (made.operands > 0) result_.steps.push_back(made);
    return true;
  }

  StraightProgram take() { return std::move(result_); }

 private:
  const Blocks& blocks(Place place) const {
    return place == Place::input ? launch_.input : place == Place::output ? launch_.output : launch_.scratch_blocks;
  }

  // All units of an operand, if they are one extent.
  std::optional<Extent> whole(const Operand& operand) const {
    const Blocks& place = blocks(operand.place);
    if (operand.count > 1 && (operand.run != operand.count || place.counts != nullptr)) return std::nullopt;
    return part_of(run_extent(place, launch_.cut.units, operand.first, operand.count), launch_.cut, 0);
  }

  StraightOperand memory(const Operand& operand, Role role) const {
    const RankBuffers& buffers = operand.reserved == 0 ? launch_.self : launch_.peers[operand.peer];
    return {.operand = &operand,
            .memory = operand.place == Place::scratch ? &launch_.scratch
                      : operand.place == Place::input ? &buffers.input
                                                      : &buffers.output,
            .offset = whole(operand)->offset * launch_.element_bytes,
            .role = role};
  }

  void add_source(const Operand& operand, StraightStep& step) {
    StraightOperand made;
    if (operand.is_memory()) {
      made = memory(operand, Role::read);
    } else {
      made.operand = &operand;
      made.lane = program_.lanes[operand.first];
      const bool lines = made.lane->view.protocol == Protocol::lines;
      made.role = operand.place == Place::flag ? Role::await : lines ? Role::receive_lines : Role::receive_bulk;
    }
    if (made.role != Role::await) made.index = step.inputs++;
    result_.operands.push_back(made);
  }

  void add_target(const Operand& operand, bool copies, StraightStep& step) {
    StraightOperand made;
    if (operand.is_memory()) {
      made = memory(operand, Role::write);
    } else {
      made.operand = &operand;
      made.lane = program_.lanes[operand.first];
      const bool lines = made.lane->view.protocol == Protocol::lines;
      made.role = operand.place == Place::flag ? Role::signal
                  : !lines                     ? Role::send_bulk
                  : copies                     ? Role::send_copy
                                               : Role::send_lines;
    }
    if (made.role != Role::signal && made.role != Role::send_copy) made.index = step.outputs++;
    result_.operands.push_back(made);
  }

  void add_releases(StraightStep& step) {
    step.first_release = static_cast<std::uint32_t>(result_.releases.size());
    for (const bool taking : {false, true}) {
      for (std::size_t k = step.first; k < result_.operands.size(); ++k) {
        const StraightOperand& at = result_.operands[k];
        const bool takes = at.role == Role::receive_lines || at.role == Role::receive_bulk || at.role == Role::await;
        if (at.lane != nullptr && takes == taking) result_.releases.push_back({at.lane, at.role});
      }
    }
    step.releases = static_cast<std::uint16_t>(result_.releases.size() - step.first_release);
  }

  const Program& program_;
  const Launch& launch_;
  const bool copies_;
  StraightProgram result_;
};

}  // namespace

StraightProgram straighten(const Program& program, const Launch& launch, bool copies) {
  if (launch.loop.pieces != 1 || launch.loop.skew != 0 || program.stage_count == 0) return {};
  Straightener straightener(program, launch, copies);
  const std::uint32_t steps = program.rounds[program.stages[program.stage_count]];
  for (std::uint32_t s = 0; s < steps; ++s) {
    if (!straightener.add(program.steps[s])) return {};
  }
  return straightener.take();
}

}  // namespace tutti
