#include "src/executor/straighten.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "src/executor/join_steps.h"
#include "src/executor/program_messages.h"

namespace tutti {
namespace {

bool is_flag(const Operand& operand) { return operand.space == Space::flag; }

// Returns null if there are several, or none.
const Operand* only_operand_with_data(std::span<const Operand> operands) {
  const auto found = std::ranges::find_if_not(operands, is_flag);
  if (found == operands.end() || !std::all_of(found + 1, operands.end(), is_flag)) return nullptr;
  return &*found;
}

class Straightener {
 public:
  Straightener(const Program& program, const Launch& launch, StraightOptions options)
      : program_(program),
        launch_(launch),
        options_(options),
        max_copies_(has_ll_messages(program) ? program.widest : UINT16_MAX),
        joiner_(result_, launch, options, has_slots(program, launch.loop), max_copies_) {}

  // Adds a step. Returns false if it is not straight.
  bool add(const Instruction& step) {
    if (moves_units(step)) return add_units(step);
    StraightStep made = empty_step(step);
    for (const Operand& operand : program_.operands_of(step)) {
      if (!operand.is_memory()) continue;
      const auto all = whole(operand);
      if (!all) return add_folds(step);
      made.count = all->count;
    }
    made.size = part_size(made.count, launch_.cut);
    if (made.size > launch_.slice_elements) return false;
    for (const Operand& operand : program_.sources_of(step)) add_source(operand, made);
    for (const Operand& operand : program_.targets_of(step)) add_target(operand, made);
    const std::uint64_t bytes = launch_.message_bytes(made.size);
    if (bytes >= options_.stored_back_bytes && bytes < options_.stored_back_end_bytes) store_back(made);
    if (options_.together) receive_in_place(made);
    joiner_.add(made);
    return true;
  }

  void end_round() { joiner_.end_round(); }
  void end_stage() { result_.stages.push_back(static_cast<std::uint32_t>(result_.steps.size())); }

  StraightProgram take() {
    for (StraightStep& step : result_.steps) {
      const std::span<const StraightLane> lanes = result_.lanes_of(step);
      step.in_order = in_order(lanes.first(step.receives)) && in_order(lanes.subspan(step.receives));
    }
    return std::move(result_);
  }

 private:
  const Blocks& blocks(Space space) const {
    return space == Space::input ? launch_.input : space == Space::output ? launch_.output : launch_.scratch_blocks;
  }

  // Extent of all units of an operand; nothing if they are not contiguous.
  std::optional<Extent> whole(const Operand& operand) const {
    const Blocks& buffer = blocks(operand.space);
    const bool in_one = operand.run == operand.count && !launch_.reuses(operand) && adjoin(buffer, launch_.cut);
    if (operand.count > 1 && !in_one) return std::nullopt;
    return run_extent(buffer, launch_.cut, operand.first, operand.count);
  }

  StraightStep empty_step(const Instruction& step) const {
    return {.lanes = static_cast<std::uint32_t>(result_.lanes.size()),
            .memory = static_cast<std::uint32_t>(result_.memory.size()),
            .fold = step.fold};
  }

  // Returns whether the step only copies units that are apart in memory, or switches add or store them, and thread
  // blocks can process all at once: from or to a message, without flags, or scratch, which overlaps no other buffer.
  bool moves_units(const Instruction& step) const {
    const bool switched = by_switches(step.fold);
    if (!options_.together || !(options_.copies_unchanged(step.fold) || switched) || launch_.cut.group > 1)
      return false;
    const Operand* const from = only_operand_with_data(program_.sources_of(step));
    const Operand* const to = only_operand_with_data(program_.targets_of(step));
    if (from == nullptr || to == nullptr) return false;
    const bool both = from->is_memory() && to->is_memory();
    if (both && (from->space == Space::scratch) == (to->space == Space::scratch)) return false;
    if (!both && (switched || step.sources + step.targets > 2)) return false;
    const auto is_apart = [&](const Operand* end) { return end->is_memory() && !whole(*end); };
    const auto can_split = [&](const Operand* end) {
      return end->is_memory() || program_.lanes[end->first]->view.protocol == Protocol::simple;
    };
    return (is_apart(from) || is_apart(to)) && can_split(from) && can_split(to);
  }

  // Adds such a step, as one for each length of units, of which there are two at most. Returns false if it is not
  // straight, or units of a message have different lengths.
  bool add_units(const Instruction& step) {
    const Operand &from = *only_operand_with_data(program_.sources_of(step)),
                  &to = *only_operand_with_data(program_.targets_of(step));
    const bool message = !from.is_memory() || !to.is_memory();
    if (from.count > max_copies_) return false;
    std::map<std::uint64_t, std::vector<std::uint32_t>> units;  // By length.
    for (std::uint32_t k = 0; k < from.count; ++k) {
      const auto length = length_of(from, to, k);
      if (!length) return false;
      units[*length].push_back(k);
    }
    if (message && units.size() > 1) return false;
    for (const auto& [length, found] : units) {
      StraightStep made = empty_step(step);
      made.inputs = made.outputs = static_cast<std::uint16_t>(found.size());
      made.copies = true;
      made.count = length;
      made.size = part_size(made.count, launch_.cut);
      if (made.size * (message ? made.inputs : 1) > launch_.slice_elements) return false;
      if (length == units.begin()->first) made.receives = add_flags(program_.sources_of(step));
      add_end(from, found, made, true);
      if (length == units.rbegin()->first) made.sends = add_flags(program_.targets_of(step));
      add_end(to, found, made, false);
      joiner_.add(made);
    }
    return true;
  }

  // Adds a step whose operands have several units that are apart in memory, as a fold of each unit. Returns false if it
  // is not straight, or units have different lengths.
  bool add_folds(const Instruction& step) {
    if (!options_.together || launch_.cut.group > 1 || by_switches(step.fold) || !can_fold_units(step)) return false;
    const Operand& shape = *std::ranges::find_if(program_.operands_of(step), &Operand::is_memory);
    StraightStep made = empty_step(step);
    made.folds = static_cast<std::uint8_t>(shape.count);
    made.count = unit_extent(shape, 0).count;
    made.size = part_size(made.count, launch_.cut);
    if (made.size * made.folds > launch_.slice_elements) return false;
    made.inputs = operands_with_data(program_.sources_of(step));
    made.outputs = operands_with_data(program_.targets_of(step));
    add_units_of(program_.sources_of(step), made.inputs, made.receives, made.reads);
    add_units_of(program_.targets_of(step), made.outputs, made.sends, made.writes);
    joiner_.add(made);
    return true;
  }

  // Returns whether all units of a step have one length, its messages are Simple, and no unit is read and another one
  // written in the same memory. Input and output may be the same.
  bool can_fold_units(const Instruction& step) const {
    std::optional<std::uint64_t> length;
    for (const Operand& operand : program_.operands_of(step)) {
      if (operand.space == Space::lane && program_.lanes[operand.first]->view.protocol != Protocol::simple)
        return false;
      if (!operand.is_memory()) continue;
      if (operand.count > UINT8_MAX || operand.count * program_.widest > max_copies_) return false;
      for (std::uint32_t k = 0; k < operand.count; ++k) {
        const std::uint64_t own = unit_extent(operand, k).count;
        if (length.value_or(own) != own) return false;
        length = own;
      }
    }
    for (const Operand& source : program_.sources_of(step)) {
      for (const Operand& target : program_.targets_of(step))
        if (source.is_memory() && target.is_memory() && shifts(source, target)) return false;
    }
    return true;
  }

  // Returns whether a unit that is read is another one that is written.
  static bool shifts(const Operand& source, const Operand& target) {
    const bool scratch = source.space == Space::scratch;
    if (source.peer != target.peer || scratch != (target.space == Space::scratch)) return false;
    for (std::uint32_t k = 0; k < source.count; ++k) {
      for (std::uint32_t other = 0; other < target.count; ++other)
        if (k != other && source.unit(k) == target.unit(other)) return true;
    }
    return false;
  }

  static std::uint16_t operands_with_data(std::span<const Operand> operands) {
    return static_cast<std::uint16_t>(operands.size() - std::ranges::count_if(operands, is_flag));
  }

  // Adds the operands of one side of folds, of which each has `apart` operands.
  void add_units_of(std::span<const Operand> operands, std::uint16_t apart, std::uint16_t& lanes,
                    std::uint16_t& extents) {
    std::uint16_t index = 0;
    for (const Operand& operand : operands) {
      for (std::uint32_t k = 0; operand.is_memory() && k < operand.count; ++k, ++extents)
        add_memory(operand, static_cast<std::uint16_t>(k * apart + index), operand.unit(k),
                   unit_extent(operand, k).offset);
      if (!operand.is_memory()) {
        ++lanes;
        add_lane(operand, index);
        result_.lanes.back().units = static_cast<std::uint16_t>(operand.count);
      }
      if (!is_flag(operand)) ++index;
    }
  }

  Extent unit_extent(const Operand& end, std::uint32_t k) const {
    return run_extent(blocks(end.space), launch_.cut, end.unit(k), 1);
  }
  // Elements of unit k of both operands; nothing if these differ. A message has units of any length.
  std::optional<std::uint64_t> length_of(const Operand& from, const Operand& to, std::uint32_t k) const {
    const std::uint64_t length = unit_extent(from.is_memory() ? from : to, k).count;
    if (from.is_memory() && to.is_memory() && unit_extent(to, k).count != length) return std::nullopt;
    return length;
  }

  std::uint16_t add_flags(std::span<const Operand> operands) {
    const auto flags = std::ranges::count_if(operands, is_flag);
    for (const Operand& operand : operands)
      if (is_flag(operand)) add_lane(operand, 0);
    return static_cast<std::uint16_t>(flags);
  }

  void add_end(const Operand& end, std::span<const std::uint32_t> units, StraightStep& made, bool source) {
    if (!end.is_memory()) {
      (source ? made.receives : made.sends) = 1;
      add_lane(end, 0);
      result_.lanes.back().units = made.inputs;
      return;
    }
    (source ? made.reads : made.writes) = made.inputs;
    for (std::uint16_t k = 0; k < made.inputs; ++k)
      add_memory(end, k, end.unit(units[k]), unit_extent(end, units[k]).offset);
  }

  void add_memory(const Operand& operand, std::uint16_t index) {
    add_memory(operand, index, operand.first, launch_.reuses(operand) ? 0 : whole(operand)->offset);
  }
  // `offset`: elements from the begin of the buffer to the unit, unless chunks reuse it.
  void add_memory(const Operand& operand, std::uint16_t index, std::uint32_t unit, std::uint64_t offset) {
    const RankBuffers& buffers = operand.reserved == 0 ? launch_.self : launch_.peers[operand.peer];
    const bool reused = launch_.reuses(operand);
    if (reused) offset = launch_.ring_offset(unit, 0);
    result_.memory.push_back({.base = operand.space == Space::input    ? &buffers.input
                                      : operand.space == Space::output ? &buffers.output
                                                                       : &buffers.scratch,
                              .offset = offset * launch_.element_bytes,
                              .operand = &operand,
                              .index = index,
                              .reused = reused});
  }

  void add_lane(const Operand& operand, std::uint16_t index) {
    LaneState* lane = program_.lanes[operand.first];
    const bool flag = operand.space == Space::flag;
    if (!flag) result_.ll = has_inline_flags(lane->view.protocol);
    result_.lanes.push_back({.lane = lane, .operand = &operand, .index = index, .flag = flag});
  }

  void add_source(const Operand& operand, StraightStep& step) {
    if (operand.is_memory()) {
      ++step.reads;
      add_memory(operand, step.inputs++);
      return;
    }
    ++step.receives;
    add_lane(operand, step.inputs);
    if (operand.space != Space::flag) ++step.inputs;
  }

  // Call after all sources are added.
  void add_target(const Operand& operand, StraightStep& step) {
    if (operand.is_memory()) {
      ++step.writes;
      add_memory(operand, step.outputs++);
      return;
    }
    ++step.sends;
    add_lane(operand, step.outputs);
    StraightLane& lane = result_.lanes.back();
    const bool copies = options_.copies && step.inputs == 1 && step.reads == 1;
    lane.copy = copies && !lane.flag && has_inline_flags(lane.lane->view.protocol);
    if (lane.copy) lane.index = 0;
    if (!lane.flag && !lane.copy) ++step.outputs;
  }

  // Call after all targets are added. Steps that only pass flags fold nothing.
  void store_back(StraightStep& step) {
    if (step.outputs == 0) return;
    for (std::uint32_t k = 0; k < step.receives; ++k) {
      StraightLane& lane = result_.lanes[step.lanes + k];
      if (!lane.flag && returns_empty_slots(lane.lane->view)) lane.back = step.outputs++;
    }
  }

  // Copies a received message to its target directly, if that is all that the step does.
  void receive_in_place(StraightStep& step) {
    const bool only = step.receives == 1 && step.sends == 0 && step.reads == 0 && step.writes == 1;
    if (!only || !options_.copies) return;
    StraightLane& lane = result_.lanes.back();
    if (lane.flag || lane.lane->view.protocol != Protocol::ll) return;
    lane.copy = true;
    lane.index = 0;
    step.inputs = step.outputs = 0;
  }

  // Returns whether each end has the number after that of the lane before.
  static bool in_order(std::span<const StraightLane> lanes) {
    const auto gap = [](const StraightLane& a, const StraightLane& b) {
      return b.operand->first != a.operand->first + 1;
    };
    return std::ranges::adjacent_find(lanes, gap) == lanes.end();
  }

  const Program& program_;
  const Launch& launch_;
  const StraightOptions options_;
  // Maximum operands on a side of a step of units. Each has a staging buffer if some lane has messages with inline
  // flags.
  const std::uint32_t max_copies_;
  StraightProgram result_;
  StepJoiner joiner_;
};

}  // namespace

StraightProgram straighten(const Program& program, const Launch& launch, StraightOptions options) {
  if (program.stage_count == 0) return {};
  Straightener straightener(program, launch, options);
  for (std::uint32_t stage = 0; stage < program.stage_count; ++stage) {
    for (std::uint32_t round = program.stages[stage]; round < program.stages[stage + 1]; ++round) {
      for (const Instruction& step : program.steps_of_round(round))
        if (!straightener.add(step)) return {};
      straightener.end_round();
    }
    if (launch.loop.skew > 0 || stage + 1 == program.stage_count) straightener.end_stage();
  }
  return straightener.take();
}

}  // namespace tutti
