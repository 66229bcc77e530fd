#include "src/executor/join_steps.h"

#include <algorithm>

namespace tutti {
namespace {

bool overlap(const StraightMemory& a, std::uint64_t a_bytes, const StraightMemory& b, std::uint64_t b_bytes) {
  return a.base == b.base && a.offset < b.offset + b_bytes && b.offset < a.offset + a_bytes;
}

}  // namespace

void StepJoiner::add(const StraightStep& step) {
  if (!join_ll_messages(step) && !join_messages(step) && !join_copies(step)) program_.steps.push_back(step);
}

// Appends the lanes and extents of a step to the previous step of its stage, which they follow directly, if both only
// send copies of memory in LL or LL128, or only receive to memory in LL. Returns false if the steps must run one
// after the other.
bool StepJoiner::join_ll_messages(const StraightStep& step) {
  if (!options_.together || !slots_ || program_.steps.size() == program_.stages.back() || step.outputs > 0)
    return false;
  StraightStep& previous = program_.steps.back();
  const auto copies = [](const StraightLane& lane) { return lane.copy; };
  if (previous.outputs > 0 || !are_independent(previous, step)) return false;
  if (!std::ranges::all_of(program_.lanes_of(step), copies) ||
      !std::ranges::all_of(program_.lanes_of(previous), copies))
    return false;
  append(step, previous);
  return true;
}

// Joins a step that only sends copies of memory in Simple, or only receives to memory, to the previous one of its
// stage, or of its round. The step then copies several operands.
bool StepJoiner::join_messages(const StraightStep& step) {
  const std::size_t first = slots_ ? program_.stages.back() : options_.rounds ? round_ : program_.steps.size();
  if (!options_.together || launch_.cut.group > 1 || program_.steps.size() == first) return false;
  StraightStep& previous = program_.steps.back();
  if (!copies_messages(step) || !copies_messages(previous) || !are_independent(previous, step)) return false;
  for (StraightMemory& memory : program_.memory_of(step)) memory.index += previous.inputs;
  append(step, previous);
  previous.inputs += step.inputs;
  previous.outputs += step.outputs;
  previous.copies = true;
  return true;
}

// Returns whether all operands on one side are Simple messages, without flags, and those on the other side memory.
bool StepJoiner::copies_messages(const StraightStep& step) {
  const auto is_simple = [](const StraightLane& lane) {
    return !lane.flag && lane.back == StraightLane::kNotBack && lane.lane->view.protocol == Protocol::simple;
  };
  const bool single = step.copies || step.inputs == 1;  // Not a sum.
  const bool one_way = single && step.inputs == step.outputs && step.receives + step.sends > 0 &&
                       step.reads + step.writes == step.inputs && (step.receives == 0) == (step.writes == 0) &&
                       (step.receives == 0 || step.sends == 0);
  return one_way && options_.copies_unchanged(step.fold) && !by_switches(step.fold) &&
         std::ranges::all_of(program_.lanes_of(step), is_simple);
}

// Returns whether two steps, which copy messages, both send or both receive, by different lanes, and do not store to
// the same memory.
bool StepJoiner::are_independent(const StraightStep& previous, const StraightStep& step) {
  const bool sends = step.receives == 0;
  if (previous.count != step.count || (previous.receives == 0) != sends) return false;
  for (const StraightLane& own : program_.lanes_of(step)) {
    for (const StraightLane& other : program_.lanes_of(previous))
      if (own.lane == other.lane) return false;
  }
  const std::uint64_t bytes = step.count * launch_.element_bytes;
  for (const StraightMemory& own : program_.memory_of(step)) {
    for (const StraightMemory& other : program_.memory_of(previous))
      if (!sends && overlap(own, bytes, other, bytes)) return false;
  }
  return true;
}

// Appends the lanes and extents of a step to the previous one, which they follow directly.
void StepJoiner::append(const StraightStep& step, StraightStep& previous) {
  for (StraightLane& lane : program_.lanes_of(step))
    lane.index = static_cast<std::uint16_t>(lane.index + previous.reads + previous.writes);
  for (const auto count : {&StraightStep::receives, &StraightStep::sends, &StraightStep::reads, &StraightStep::writes})
    previous.*count = static_cast<std::uint16_t>(previous.*count + step.*count);
}

// Returns true if the step only copies extents to scratch, or only from scratch, and not by switches. Scratch
// overlaps no other buffer, so such copies are independent of each other.
bool StepJoiner::copies(const StraightStep& step, bool to_scratch) {
  if (by_switches(step.fold) || !options_.copies_unchanged(step.fold) || step.reads != step.writes ||
      step.inputs != step.reads || step.outputs != step.writes || !(step.copies || step.inputs == 1))
    return false;
  std::uint32_t k = 0;
  return std::ranges::all_of(program_.memory_of(step), [&](const StraightMemory& memory) {
    return (memory.operand->space == Space::scratch) == (to_scratch == (k++ >= step.reads));
  });
}

// Joins a step that copies extents to a previous one of its stage, if only independent copies lie between them. They
// await flags only before all copies, and signal only after them.
bool StepJoiner::join_copies(const StraightStep& step) {
  if (!options_.together || launch_.cut.group > 1 || step.reads == 0 || step.receives > 0) return false;
  const bool to_scratch = program_.memory.back().operand->space == Space::scratch;
  if (!copies(step, to_scratch) || !std::ranges::all_of(program_.lanes_of(step), &StraightLane::flag)) return false;
  for (std::size_t s = program_.steps.size(); s > program_.stages.back(); --s) {
    StraightStep& previous = program_.steps[s - 1];
    if (previous.sends > 0 || !copies(previous, to_scratch) || overlaps(step, previous)) return false;
    const bool fits = previous.reads + step.reads <= static_cast<int>(max_copies_);
    if (previous.count == step.count && fits) return append_copies(step, s - 1);
    if (step.sends > 0 || previous.receives > 0) return false;
  }
  return false;
}

// Returns whether copies of a step write to memory that those of another one do.
bool StepJoiner::overlaps(const StraightStep& step, const StraightStep& other) {
  for (const StraightMemory& own : program_.memory_of(step).subspan(step.reads)) {
    for (const StraightMemory& theirs : program_.memory_of(other).subspan(other.reads))
      if (overlap(own, bytes_of(own, step), theirs, bytes_of(theirs, other))) return true;
  }
  return false;
}

// Units of reused scratch have room for the chunks of the ring only, whatever the length of the call.
std::uint64_t StepJoiner::bytes_of(const StraightMemory& memory, const StraightStep& step) const {
  return (memory.reused ? launch_.ring_offset(1, 0) : step.count) * launch_.element_bytes;
}

// Appends the copies of the last step, which is not in the list yet, to those of step `s`.
bool StepJoiner::append_copies(const StraightStep& step, std::size_t s) {
  StraightStep& joined = program_.steps[s];
  for (StraightMemory& memory : program_.memory_of(step))
    memory.index = static_cast<std::uint16_t>(memory.index + joined.inputs);
  // Extents read precede those written, and those of other steps follow.
  const auto reads = program_.memory.begin() + joined.memory + joined.reads;
  std::rotate(reads, program_.memory.begin() + step.memory, program_.memory.begin() + step.memory + step.reads);
  const auto writes = reads + step.reads + joined.writes;
  std::rotate(writes, program_.memory.end() - step.writes, program_.memory.end());
  for (std::size_t later = s + 1; later < program_.steps.size(); ++later)
    program_.steps[later].memory += std::uint32_t{step.reads} + step.writes;
  for (const auto count : {&StraightStep::reads, &StraightStep::writes, &StraightStep::inputs, &StraightStep::outputs})
    joined.*count = static_cast<std::uint16_t>(joined.*count + step.*count);
  joined.sends = step.sends;
  joined.copies = true;
  return true;
}

}  // namespace tutti
