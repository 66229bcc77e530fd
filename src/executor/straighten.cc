#include "src/executor/straighten.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

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
        joins_(options.together && has_slots(program, launch.loop)),
        max_copies_(has_ll_messages(program) ? program.widest : UINT16_MAX) {}

  // Adds a step. Returns false if it is not straight.
  bool add(const Instruction& step) {
    if (moves_units(step)) return add_units(step);
    StraightStep made = empty_step(step);
    for (const Operand& operand : program_.operands_of(step)) {
      if (!operand.is_memory()) continue;
      const auto all = whole(operand);
      if (!all) return false;
      made.count = all->count;
    }
    made.size = part_size(made.count, launch_.cut);
    if (made.size > launch_.slice_elements) return false;
    for (const Operand& operand : program_.sources_of(step)) add_source(operand, made);
    for (const Operand& operand : program_.targets_of(step)) add_target(operand, made);
    const std::uint64_t bytes = launch_.message_bytes(made.size);
    if (bytes >= options_.stored_back_bytes && bytes < options_.stored_back_end_bytes) store_back(made);
    if (options_.together) receive_in_place(made);
    if (!join_ll_messages(made) && !join_messages(made) && !join_copies(made)) result_.steps.push_back(made);
    return true;
  }

  void end_stage() { result_.stages.push_back(static_cast<std::uint32_t>(result_.steps.size())); }

  StraightProgram take() {
    for (StraightStep& step : result_.steps) {
      const std::span<const StraightLane> lanes = lanes_of(step);
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

  bool copies_unchanged(Fold fold) const { return options_.copies || (options_.divides && fold == Fold::partial); }

  StraightStep empty_step(const Instruction& step) const {
    return {.lanes = static_cast<std::uint32_t>(result_.lanes.size()),
            .memory = static_cast<std::uint32_t>(result_.memory.size()),
            .fold = step.fold};
  }

  // Returns whether the step only copies units that are apart in memory, or switches add or store them, and thread
  // blocks can process all at once: from or to a message, without flags, or scratch, which overlaps no other buffer.
  bool moves_units(const Instruction& step) const {
    const bool switched = by_switches(step.fold);
    if (!options_.together || !(copies_unchanged(step.fold) || switched) || launch_.cut.group > 1) return false;
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
      if (!join_messages(made) && !join_copies(made)) result_.steps.push_back(made);
    }
    return true;
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

  std::span<StraightLane> lanes_of(const StraightStep& step) {
    return std::span(result_.lanes).subspan(step.lanes, std::size_t{step.receives} + step.sends);
  }
  std::span<StraightMemory> memory_of(const StraightStep& step) {
    return std::span(result_.memory).subspan(step.memory, std::size_t{step.reads} + step.writes);
  }

  // Appends the lanes and extents of a step to the previous step of its stage, which they follow directly, if both only
  // send copies of memory in LL or LL128, or only receive to memory in LL. Returns false if the steps must run one
  // after the other.
  bool join_ll_messages(const StraightStep& step) {
    if (!joins_ || result_.steps.size() == result_.stages.back() || step.outputs > 0) return false;
    StraightStep& previous = result_.steps.back();
    const auto copies = [](const StraightLane& lane) { return lane.copy; };
    if (previous.outputs > 0 || !are_independent(previous, step)) return false;
    if (!std::ranges::all_of(lanes_of(step), copies) || !std::ranges::all_of(lanes_of(previous), copies)) return false;
    append(step, previous);
    return true;
  }

  // Joins a step that only sends copies of memory in Simple, or only receives to memory, to the previous one of its
  // stage. The step then copies several operands.
  bool join_messages(const StraightStep& step) {
    if (!joins_ || launch_.cut.group > 1 || result_.steps.size() == result_.stages.back()) return false;
    StraightStep& previous = result_.steps.back();
    if (!copies_messages(step) || !copies_messages(previous) || !are_independent(previous, step)) return false;
    for (StraightMemory& memory : memory_of(step)) memory.index += previous.inputs;
    append(step, previous);
    previous.inputs += step.inputs;
    previous.outputs += step.outputs;
    previous.copies = true;
    return true;
  }

  // Returns whether all operands on one side are Simple messages, without flags, and those on the other side memory.
  bool copies_messages(const StraightStep& step) {
    const auto is_simple = [](const StraightLane& lane) {
      return !lane.flag && lane.back == StraightLane::kNotBack && lane.lane->view.protocol == Protocol::simple;
    };
    const bool single = step.copies || step.inputs == 1;  // Not a sum.
    const bool one_way = single && step.inputs == step.outputs && step.receives + step.sends > 0 &&
                         step.reads + step.writes == step.inputs && (step.receives == 0) == (step.writes == 0) &&
                         (step.receives == 0 || step.sends == 0);
    return one_way && copies_unchanged(step.fold) && !by_switches(step.fold) &&
           std::ranges::all_of(lanes_of(step), is_simple);
  }

  // Returns whether two steps, which copy messages, both send or both receive, by different lanes, and do not store to
  // the same memory.
  bool are_independent(const StraightStep& previous, const StraightStep& step) {
    const bool sends = step.receives == 0;
    if (previous.count != step.count || (previous.receives == 0) != sends) return false;
    for (const StraightLane& own : lanes_of(step)) {
      for (const StraightLane& other : lanes_of(previous))
        if (own.lane == other.lane) return false;
    }
    const std::uint64_t bytes = step.count * launch_.element_bytes;
    for (const StraightMemory& own : memory_of(step)) {
      for (const StraightMemory& other : memory_of(previous))
        if (!sends && overlap(own, bytes, other, bytes)) return false;
    }
    return true;
  }

  // Appends the lanes and extents of a step to the previous one, which they follow directly.
  void append(const StraightStep& step, StraightStep& previous) {
    for (StraightLane& lane : lanes_of(step))
      lane.index = static_cast<std::uint16_t>(lane.index + previous.reads + previous.writes);
    for (const auto count :
         {&StraightStep::receives, &StraightStep::sends, &StraightStep::reads, &StraightStep::writes})
      previous.*count = static_cast<std::uint16_t>(previous.*count + step.*count);
  }

  // Returns true if the step only copies extents to scratch, or only from scratch, and not by switches. Scratch
  // overlaps no other buffer, so such copies are independent of each other.
  bool copies(const StraightStep& step, bool to_scratch) {
    if (by_switches(step.fold) || !copies_unchanged(step.fold) || step.reads != step.writes ||
        step.inputs != step.reads || step.outputs != step.writes || !(step.copies || step.inputs == 1))
      return false;
    std::uint32_t k = 0;
    return std::ranges::all_of(memory_of(step), [&](const StraightMemory& memory) {
      return (memory.operand->space == Space::scratch) == (to_scratch == (k++ >= step.reads));
    });
  }

  // Joins a step that copies extents to a previous one of its stage, if only independent copies lie between them. They
  // await flags only before all copies, and signal only after them.
  bool join_copies(const StraightStep& step) {
    if (!options_.together || launch_.cut.group > 1 || step.reads == 0 || step.receives > 0) return false;
    const bool to_scratch = result_.memory.back().operand->space == Space::scratch;
    if (!copies(step, to_scratch) || !std::ranges::all_of(lanes_of(step), &StraightLane::flag)) return false;
    for (std::size_t s = result_.steps.size(); s > result_.stages.back(); --s) {
      StraightStep& previous = result_.steps[s - 1];
      if (previous.sends > 0 || !copies(previous, to_scratch) || overlaps(step, previous)) return false;
      const bool fits = previous.reads + step.reads <= static_cast<int>(max_copies_);
      if (previous.count == step.count && fits) return append_copies(step, s - 1);
      if (step.sends > 0 || previous.receives > 0) return false;
    }
    return false;
  }

  // Returns whether copies of a step write to memory that those of another one do.
  bool overlaps(const StraightStep& step, const StraightStep& other) {
    for (const StraightMemory& own : memory_of(step).subspan(step.reads)) {
      for (const StraightMemory& theirs : memory_of(other).subspan(other.reads))
        if (overlap(own, bytes_of(own, step), theirs, bytes_of(theirs, other))) return true;
    }
    return false;
  }

  // Units of reused scratch have room for the chunks of the ring only, whatever the length of the call.
  std::uint64_t bytes_of(const StraightMemory& memory, const StraightStep& step) const {
    return (memory.reused ? launch_.ring_offset(1, 0) : step.count) * launch_.element_bytes;
  }

  // Appends the copies of the last step, which is not in the list yet, to those of step `s`.
  bool append_copies(const StraightStep& step, std::size_t s) {
    StraightStep& joined = result_.steps[s];
    for (StraightMemory& memory : memory_of(step))
      memory.index = static_cast<std::uint16_t>(memory.index + joined.inputs);
    // Extents read precede those written, and those of other steps follow.
    const auto reads = result_.memory.begin() + joined.memory + joined.reads;
    std::rotate(reads, result_.memory.begin() + step.memory, result_.memory.begin() + step.memory + step.reads);
    const auto writes = reads + step.reads + joined.writes;
    std::rotate(writes, result_.memory.end() - step.writes, result_.memory.end());
    for (std::size_t later = s + 1; later < result_.steps.size(); ++later)
      result_.steps[later].memory += std::uint32_t{step.reads} + step.writes;
    for (const auto count :
         {&StraightStep::reads, &StraightStep::writes, &StraightStep::inputs, &StraightStep::outputs})
      joined.*count = static_cast<std::uint16_t>(joined.*count + step.*count);
    joined.sends = step.sends;
    joined.copies = true;
    return true;
  }

  static bool overlap(const StraightMemory& a, std::uint64_t a_bytes, const StraightMemory& b, std::uint64_t b_bytes) {
    return a.base == b.base && a.offset < b.offset + b_bytes && b.offset < a.offset + a_bytes;
  }

  const Program& program_;
  const Launch& launch_;
  const StraightOptions options_;
  const bool joins_;  // See StraightOptions::together.
  // Copies of a step. Each has a staging buffer if some lane has messages with inline flags.
  const std::uint32_t max_copies_;
  StraightProgram result_;
};

}  // namespace

StraightProgram straighten(const Program& program, const Launch& launch, StraightOptions options) {
  if (program.stage_count == 0) return {};
  Straightener straightener(program, launch, options);
  for (std::uint32_t stage = 0; stage < program.stage_count; ++stage) {
    for (const Instruction& step : program.steps_of(stage))
      if (!straightener.add(step)) return {};
    if (launch.loop.skew > 0 || stage + 1 == program.stage_count) straightener.end_stage();
  }
  return straightener.take();
}

}  // namespace tutti
