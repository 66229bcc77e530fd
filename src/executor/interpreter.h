// Interprets a program as a resumable state machine. Host and device compile this source for thread i of n. All threads
// of a thread block run it concurrently and make identical decisions. The Backend supplies the differences:
// the number of threads, how they fold, and whether they block. A CPU is thread 0 of 1 and never blocks, so one thread
// can drive several interpreters.
//
//   Backend::source(index, pointer, operand)        set the index-th data operand that fold() reads
//   Backend::target(index, pointer, operand)        set the index-th data operand that fold() writes
//   Backend::source(index, pointer), target(...)    the same for lanes; also for memory if plain()
//   Backend::plain()                                true if the kind of memory is irrelevant
//   Backend::fold(sources, targets, count, kind)    fold `count` elements of the given operands, by all threads
//   Backend::copy(count, bytes, kind)               copy `count` sources to the targets of the same index, all at once,
//                                                   or by switches, by `kind`; see StraightOptions::together
//   Backend::stage(index)                           staging buffer for an LL message, at least a slot long
//   Backend::part(messages)                         the LL messages that this thread transfers, out of so many at once
//   Backend::receive_ll_message(...), send_ll_message(...)    LL transfers, by the threads of a part
//   Backend::take_ll_message(lane)                       take() of an LL message
//   Backend::count_ll_message(lane, signature, bytes)    counts a sent LL message
//   Backend::serves(lane), takes(index)             true if this thread handles the lane or operand
//   Backend::served(lane), taken()                  those that this thread handles, of lane ends that follow each other
//                                                   from `lane` on, and of operands: a Part
//   Backend::await(poll)                            result of poll(); a thread block waits for it
//   Backend::agree(progress)                        barrier; combines the progress of all threads
//   Backend::join()                                 barrier
//   Backend::stores_back(lane, bytes)               true if a received slot must be stored back
#pragma once

#include "src/executor/straight_run.h"

namespace tutti {

template <typename Backend>
class Interpreter {
 public:
  // `pointers`: 2 * program.widest entries for the exclusive use of this run.
  TUTTI_HOST_DEVICE Interpreter(const Program& program, const Launch& launch, Backend backend, std::byte** pointers)
      : program_(program), launch_(launch), backend_(backend), sources_(pointers), targets_(pointers + program.widest) {
    const std::uint32_t behind = launch.loop.skew * (program.stage_count > 0 ? program.stage_count - 1 : 0);
    iterations_ = program.stage_count == 0 ? 0 : launch.loop.chunks + behind;
    start();
  }

  // Restarts from the beginning: a launch may run again with other buffers.
  TUTTI_HOST_DEVICE void start() {
    cursor_ = {};
    stages_ = launch_.straight.stages == nullptr ? program_.stage_count : launch_.straight.stage_count;
    if (iterations_ > 0 && !enter_stage()) next_stage();
  }

  // Resumes where an earlier run of the launch stopped. Operands acquired for the current step are acquired again,
  // because nothing is consumed before a step is done.
  TUTTI_HOST_DEVICE void resume(const Cursor& cursor, bool more) {
    cursor_ = cursor;
    cursor_.acquired = 0;
    more_ = more;
    find_part();
  }

  // Runs as far as the peers' messages allow. Returns `waiting` if blocked() must make progress first, and `mismatch`
  // if a received message belongs to another call.
  TUTTI_HOST_DEVICE Progress advance() {
    const bool straight = launch_.straight.stages != nullptr;
    while (cursor_.iteration < iterations_) {
      const Progress progress = straight ? run_straight_stage() : run_round();
      if (progress != Progress::done) return progress;
      straight ? next_stage() : next_round();
    }
    return Progress::done;
  }

  TUTTI_HOST_DEVICE const Blocked& blocked() const { return blocked_; }
  TUTTI_HOST_DEVICE const Cursor& cursor() const { return cursor_; }
  TUTTI_HOST_DEVICE bool more() const { return more_; }
  TUTTI_HOST_DEVICE Backend& backend() { return backend_; }
  TUTTI_HOST_DEVICE const Backend& backend() const { return backend_; }

 private:
  // ---- The loop ----

  TUTTI_HOST_DEVICE std::uint32_t stage() const {
    const bool reversed = launch_.loop.skew > 0 && launch_.loop.order == StageOrder::latest_first;
    return reversed ? stages_ - 1 - cursor_.stage : cursor_.stage;
  }

  // Sets the chunk of this stage. Returns false if the stage has no chunk in this iteration.
  TUTTI_HOST_DEVICE bool find_part() {
    const std::uint32_t behind = launch_.loop.skew * stage();
    chunk_ = cursor_.iteration - behind;
    if (cursor_.iteration < behind || chunk_ >= launch_.loop.chunks) return false;
    part_ = chunk_ * launch_.channels + launch_.channel;
    ring_part_ = launch_.ring_part(chunk_);
    return true;
  }

  TUTTI_HOST_DEVICE bool enter_stage() {
    if (!find_part()) return false;
    if (launch_.straight.stages != nullptr) {
      cursor_.step = launch_.straight.stages[stage()];
      return true;
    }
    cursor_.round = program_.stages[stage()];
    cursor_.step = program_.rounds[cursor_.round];
    return cursor_.round < program_.stages[stage() + 1];
  }

  TUTTI_HOST_DEVICE void next_stage() {
    do {
      if (++cursor_.stage == stages_) {
        cursor_.stage = 0;
        if (++cursor_.iteration == iterations_) return;
      }
    } while (!enter_stage());
  }

  TUTTI_HOST_DEVICE void next_round() {
    cursor_.slice = 0;
    if (++cursor_.round < program_.stages[stage() + 1]) {
      cursor_.step = program_.rounds[cursor_.round];
      return;
    }
    next_stage();
  }

  TUTTI_HOST_DEVICE Progress run_round() {
    const std::uint32_t end = program_.rounds[cursor_.round + 1];
    for (;;) {
      for (; cursor_.step < end; ++cursor_.step) {
        const Progress progress = run_step(program_.steps[cursor_.step]);
        if (progress != Progress::done) return progress;
        cursor_.acquired = 0;
      }
      if (!more_) return Progress::done;
      more_ = false;
      ++cursor_.slice;
      cursor_.step = program_.rounds[cursor_.round];
    }
  }

  // ---- A step ----

  TUTTI_HOST_DEVICE const Blocks& blocks(Space space) const {
    return space == Space::input ? launch_.input : space == Space::output ? launch_.output : launch_.scratch_blocks;
  }

  TUTTI_HOST_DEVICE std::byte* base(const Operand& operand) const {
    const RankBuffers& memory = operand.reserved == 0 ? launch_.self : launch_.peers[operand.peer];
    return operand.space == Space::input    ? memory.input
           : operand.space == Space::output ? memory.output
                                            : memory.scratch;
  }

  TUTTI_HOST_DEVICE bool whole(const Operand& operand) const {
    return operand.count == 1 ||
           (operand.run == operand.count && !launch_.reuses(operand) && adjoin(blocks(operand.space), launch_.cut));
  }

  // Extent of the i-th unit of a range, or of the whole range if `all`.
  TUTTI_HOST_DEVICE Extent extent(const Operand& operand, std::uint32_t i, bool all) const {
    const Blocks& buffer = blocks(operand.space);
    const Extent run = all ? run_extent(buffer, launch_.cut, operand.first, operand.count)
                           : run_extent(buffer, launch_.cut, operand.unit(i), 1);
    Extent part = part_of(run, launch_.cut, part_);
    if (launch_.reuses(operand)) part.offset = launch_.ring_offset(operand.unit(i), ring_part_);
    return part;
  }

  // Element range [begin, begin + count) of the current slice within a message. With compression, every extent is
  // rounded up to whole groups.
  struct SliceRange {
    std::uint64_t begin = 0;
    std::uint64_t count = 0;  // 0: no such slice, or an empty one.
    bool in_one = false;      // All data operands are contiguous.
  };

  // Elements of message space occupied by `count` elements.
  TUTTI_HOST_DEVICE std::uint64_t room_of(std::uint64_t count) const {
    return launch_.cut.group == 1 ? count : groups_of(count, launch_.cut) * launch_.cut.group;
  }

  TUTTI_HOST_DEVICE SliceRange slice_range(const Instruction& step) {
    const Operand* operands = program_.operands + step.first;
    const Operand* shape = nullptr;
    bool in_one = true;
    for (std::uint32_t i = 0; i < std::uint32_t{step.sources} + step.targets; ++i) {
      if (!operands[i].is_memory()) continue;
      shape = operands + i;
      in_one = in_one && whole(operands[i]);
    }
    std::uint64_t total = 0;
    if (in_one) {
      total = extent(*shape, 0, true).count;
    } else {
      for (std::uint32_t i = 0; i < shape->count; ++i) total += room_of(extent(*shape, i, false).count);
    }
    const std::uint64_t begin = cursor_.slice * launch_.slice_elements;
    if (begin >= total) return {};
    const std::uint64_t left = total - begin;
    if (left <= launch_.slice_elements) return {begin, left, in_one};
    more_ = true;
    return {begin, launch_.slice_elements, in_one};
  }

  TUTTI_HOST_DEVICE Progress run_step(const Instruction& step) {
    const SliceRange slice = step.flags_only ? SliceRange{} : slice_range(step);
    silent_ = slice.count == 0 && !(launch_.even_if_empty && cursor_.slice == 0);
    if (silent_ && (step.flags == 0 || cursor_.slice > 0)) return Progress::done;
    const std::uint64_t bytes = launch_.message_bytes(slice.count);
    const Progress progress = acquire(step, bytes);
    if (progress != Progress::done) return progress;
    if (slice.count > 0) fold(step, slice);
    release(step, bytes);
    return Progress::done;
  }

  TUTTI_HOST_DEVICE LaneState& lane_of(const Operand& operand) const { return *program_.lanes[operand.first]; }

  // Messages without elements are not sent; both ends know this. Flags are always signalled.
  TUTTI_HOST_DEVICE bool takes_part(const Operand& operand) const {
    return operand.space == Space::flag || (operand.space == Space::lane && !silent_);
  }

  TUTTI_HOST_DEVICE Progress acquire(const Instruction& step, std::uint64_t bytes) {
    const Operand* operands = program_.operands + step.first;
    const std::uint32_t count = std::uint32_t{step.sources} + step.targets;
    Progress progress = Progress::done;
    for (; cursor_.acquired < count; ++cursor_.acquired) {
      const Operand& operand = operands[cursor_.acquired];
      if (!takes_part(operand)) continue;
      const bool source = cursor_.acquired < step.sources;
      progress = source ? receive(operand, cursor_.acquired, bytes) : reserve(operand, cursor_.acquired - step.sources);
      if (progress == Progress::done) continue;
      blocked_.operand = &operand;
      blocked_.lane = &lane_of(operand);
      blocked_.sends = !source;
      break;
    }
    return backend_.agree(progress);
  }

  TUTTI_HOST_DEVICE Progress receive(const Operand& operand, std::uint32_t index, std::uint64_t bytes) {
    LaneState& lane = lane_of(operand);
    std::byte* data = nullptr;
    if (has_inline_flags(operand)) {
      data = backend_.stage(index);
      const Progress progress =
          backend_.receive_ll_message(lane, launch_.signature, bytes, backend_.part(1), data, blocked_);
      if (backend_.takes(index)) sources_[index] = data;
      return progress;
    }
    if (!backend_.serves(&lane)) return Progress::done;
    const Progress progress = backend_.await([&] { return receive_simple(lane, launch_.signature, data); });
    sources_[index] = data;
    return progress;
  }

  TUTTI_HOST_DEVICE bool has_inline_flags(const Operand& operand) const {
    return operand.space == Space::lane && tutti::has_inline_flags(lane_of(operand).view.protocol);
  }

  TUTTI_HOST_DEVICE Progress reserve(const Operand& operand, std::uint32_t index) {
    LaneState& lane = lane_of(operand);
    if (!backend_.serves(&lane)) return Progress::done;
    const Progress progress = backend_.await([&] { return room_for_message(lane); });
    if (operand.space == Space::flag) return progress;
    targets_[index] = has_inline_flags(operand) ? backend_.stage(program_.widest) : slot_of(lane.view, lane.next);
    return progress;
  }

  TUTTI_HOST_DEVICE void fold(const Instruction& step, const SliceRange& slice) {
    if (slice.in_one) {
      fold_extent(step, 0, {slice.begin, slice.count}, true);
      return;
    }
    const Operand* shape = shape_of(step);
    std::uint64_t position = 0;  // Position of the unit's part within the message.
    for (std::uint32_t i = 0; i < shape->count && position < slice.begin + slice.count; ++i) {
      const std::uint64_t length = extent(*shape, i, false).count;
      const std::uint64_t from = position < slice.begin ? slice.begin - position : 0;
      const std::uint64_t end = slice.begin + slice.count - position;
      const std::uint64_t to = length < end ? length : end;
      if (from < to) fold_extent(step, i, {from, to - from}, false, position + from - slice.begin);
      position += room_of(length);
    }
  }

  TUTTI_HOST_DEVICE const Operand* shape_of(const Instruction& step) const {
    const Operand* operand = program_.operands + step.first;
    while (!operand->is_memory()) ++operand;
    return operand;
  }

  // Folds elements [range.offset, + range.count) of the i-th extents. `at` is the position within the slot.
  TUTTI_HOST_DEVICE void fold_extent(const Instruction& step, std::uint32_t i, Extent range, bool all,
                                     std::uint64_t at = 0) {
    const Operand* operands = program_.operands + step.first;
    const std::uint64_t shift = launch_.message_bytes(at);
    std::uint32_t inputs = 0;
    std::uint32_t outputs = 0;
    for (std::uint32_t k = 0; k < std::uint32_t{step.sources} + step.targets; ++k) {
      const Operand& operand = operands[k];
      if (operand.space == Space::flag) continue;
      const bool source = k < step.sources;
      const std::uint32_t index = source ? inputs++ : outputs++;
      if (!backend_.takes(k)) continue;
      std::byte* pointer;
      if (operand.is_memory()) {
        pointer = base(operand) + (extent(operand, i, all).offset + range.offset) * launch_.element_bytes;
      } else {
        pointer = (source ? sources_[k] : targets_[k - step.sources]);
      }
      const std::uint64_t offset = operand.is_memory() ? 0 : shift;
      if (source) {
        backend_.source(index, pointer + offset, operand);
      } else {
        backend_.target(index, pointer + offset, operand);
      }
    }
    const std::uint64_t bytes = launch_.message_bytes(range.count);
    for (std::uint32_t k = 0; k < step.sources; ++k) {
      if (operands[k].space != Space::lane || !backend_.stores_back(lane_of(operands[k]), bytes)) continue;
      backend_.target(outputs++, sources_[k] + shift);
    }
    backend_.join();
    backend_.fold(inputs, outputs, range.count, step.fold);
    backend_.join();
  }

  TUTTI_HOST_DEVICE void release(const Instruction& step, std::uint64_t bytes) {
    const Operand* sources = program_.operands + step.first;
    const Operand* targets = sources + step.sources;
    for (std::uint32_t k = 0; k < step.targets; ++k) {
      if (!takes_part(targets[k]) || !has_inline_flags(targets[k])) continue;
      backend_.send_ll_message(lane_of(targets[k]), launch_.signature, backend_.stage(program_.widest), bytes,
                               backend_.part(1));
    }
    backend_.join();
    for (std::uint32_t k = 0; k < step.targets; ++k) {
      if (!takes_part(targets[k]) || !backend_.serves(&lane_of(targets[k]))) continue;
      LaneState& lane = lane_of(targets[k]);
      has_inline_flags(targets[k]) ? backend_.count_ll_message(lane, launch_.signature, bytes)
                                   : simple_post(lane, launch_.signature, bytes);
    }
    for (std::uint32_t k = 0; k < step.sources; ++k) {
      if (takes_part(sources[k]) && backend_.serves(&lane_of(sources[k]))) take(lane_of(sources[k]));
    }
    backend_.join();
  }

  // ---- Straight programs ----

  TUTTI_HOST_DEVICE Progress run_straight_stage() {
    StraightRun<Backend> run{launch_, backend_, cursor_, blocked_, backend_.stage(program_.widest), part_, ring_part_};
    const std::uint32_t end = launch_.straight.stages[stage() + 1];
    return launch_.straight.ll ? run.template until<true>(end) : run.template until<false>(end);
  }

  const Program& program_;
  const Launch& launch_;
  Backend backend_;
  std::byte** sources_;
  std::byte** targets_;
  Blocked blocked_;
  Cursor cursor_;
  std::uint32_t iterations_ = 0;
  std::uint32_t stages_ = 0;
  std::uint32_t chunk_ = 0;
  std::uint32_t part_ = 0;       // Index of the chunk among those of all channels.
  std::uint32_t ring_part_ = 0;  // The same in scratch that is reused.
  bool silent_ = false;          // The step has no elements to send.
  bool more_ = false;            // Some step of this round has another slice.
};

}  // namespace tutti
