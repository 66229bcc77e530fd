// Runs part of a straight program: the interpreter's fast path. Host and device compile this source.
#pragma once

#include "src/executor/lane_operations.h"

namespace tutti {

template <typename Backend>
struct StraightRun {
  using Part = typename Backend::Part;

  const Launch& launch;
  Backend& backend;
  Cursor& cursor;
  Blocked& blocked;
  std::byte* outgoing;      // Staging buffer for LL messages that are not copied directly.
  std::uint32_t part;       // Index of the chunk among those of all channels.
  std::uint32_t ring_part;  // The same in scratch that is reused.

  // Runs from the cursor's step to `end`.
  template <bool kLl>
  TUTTI_HOST_DEVICE Progress until(std::uint32_t end) {
    for (; cursor.step < end; ++cursor.step) {
      const StraightStep& step = launch.straight.steps[cursor.step];
      const std::uint64_t count = part_count(step.count, step.size, part);
      const bool silent = count == 0 && !launch.even_if_empty;
      const Progress progress = silent ? exchange_flags(step) : run_step<kLl>(step, count);
      if (progress != Progress::done) return progress;
      cursor.acquired = 0;
    }
    return Progress::done;
  }

  template <bool kLl>
  TUTTI_HOST_DEVICE Progress run_step(const StraightStep& step, std::uint64_t count) {
    const std::uint64_t bytes = launch.message_bytes(count);
    const Part from = part_of<kLl>(step, 0, step.receives);
    const Part to = part_of<kLl>(step, step.receives, step.sends);
    Progress progress = acquire<kLl>(step, from, to, bytes);
    if (progress == Progress::done && step.outputs > 0) find_memory(step);
    progress = backend.agree(progress);
    if (progress != Progress::done) return progress;
    if (step.outputs > 0) {
      step.copies ? backend.copy(step.inputs, bytes, step.fold)
                  : backend.fold(step.inputs, step.outputs, count, step.fold, step.folds);
      backend.join();
    }
    release<kLl>(step, from, to, bytes);
    return Progress::done;
  }

  // Receives messages, then waits for room.
  template <bool kLl>
  TUTTI_HOST_DEVICE Progress acquire(const StraightStep& step, const Part& from, const Part& to, std::uint64_t bytes) {
    const StraightLane* lanes = launch.straight.lanes + step.lanes;
    std::uint32_t ready = cursor.acquired + from.first;
    for (; ready < step.receives; ready += from.step) {
      const Progress progress = receive<kLl>(step, lanes[ready], from, bytes);
      if (progress != Progress::done) return block(step, ready, progress);
    }
    ready = (cursor.acquired > step.receives ? cursor.acquired : step.receives) + to.first;
    for (; ready < std::uint32_t{step.receives} + step.sends; ready += to.step) {
      const Progress progress = reserve<kLl>(step, lanes[ready], to, bytes);
      if (progress != Progress::done) return block(step, ready, progress);
    }
    return Progress::done;
  }

  // The lanes that this thread handles, of `count` of the step, counted from lane `begin`. serves() chooses among them.
  template <bool kLl>
  TUTTI_HOST_DEVICE Part part_of(const StraightStep& step, std::uint32_t begin, std::uint32_t count) const {
    if constexpr (kLl) return backend.part(count);
    return step.in_order && count > 0 ? backend.served(launch.straight.lanes[step.lanes + begin].lane) : Part{};
  }

  // True if this thread handles the end of the lane.
  template <bool kLl>
  TUTTI_HOST_DEVICE bool serves(const StraightLane& at, const Part& own) const {
    return kLl ? own.leads() : backend.serves(at.lane);
  }

  template <bool kLl>
  TUTTI_HOST_DEVICE Progress receive(const StraightStep& step, const StraightLane& at, const Part& own,
                                     std::uint64_t bytes) {
    std::byte* data = nullptr;
    if (kLl && !at.flag) {
      data = at.copy ? memory_of(step, at.index) : backend.stage(at.index);
      const Progress progress = backend.receive_ll_message(*at.lane, launch.signature, bytes, own, data, blocked);
      if (progress == Progress::done && !at.copy && own.leads()) backend.source(at.index, data);
      return progress;
    }
    if (!serves<kLl>(at, own)) return Progress::done;
    const Progress progress = backend.await([&] { return receive_simple(*at.lane, launch.signature, data); });
    if (progress != Progress::done || at.flag) return progress;
    const std::uint32_t apart = step.folds > 1 ? step.inputs : 1;
    TUTTI_ROLLED
    for (std::uint32_t k = 0; k < at.units; ++k) backend.source(at.index + k * apart, data + k * bytes);
    if (at.back != StraightLane::kNotBack) backend.target(at.back, data);
    return progress;
  }

  template <bool kLl>
  TUTTI_HOST_DEVICE Progress reserve(const StraightStep& step, const StraightLane& at, const Part& own,
                                     std::uint64_t bytes) {
    if (!serves<kLl>(at, own)) return Progress::done;
    const Progress progress = backend.await([&] { return room_for_message(*at.lane); });
    if (progress != Progress::done || at.flag || at.copy) return progress;
    std::byte* to = kLl ? outgoing : slot_of(at.lane->view, at.lane->next);
    const std::uint32_t apart = step.folds > 1 ? step.outputs : 1;
    TUTTI_ROLLED
    for (std::uint32_t k = 0; k < at.units; ++k) backend.target(at.index + k * apart, to + k * bytes);
    return progress;
  }

  template <bool kLl>
  TUTTI_HOST_DEVICE void release(const StraightStep& step, const Part& from, const Part& to, std::uint64_t bytes) {
    const StraightLane* lanes = launch.straight.lanes + step.lanes;
    const StraightLane* sends = lanes + step.receives;
    for (std::uint32_t k = to.first; kLl && k < step.sends; k += to.step) {
      if (sends[k].flag) continue;
      const std::byte* data = sends[k].copy ? memory_of(step, sends[k].index) : outgoing;
      backend.send_ll_message(*sends[k].lane, launch.signature, data, bytes, to);
    }
    if (kLl && step.sends > 0) backend.join();  // All threads of a part read the lane end.
    for (std::uint32_t k = to.first; k < step.sends; k += to.step) {
      if (!serves<kLl>(sends[k], to)) continue;
      kLl && !sends[k].flag ? backend.count_ll_message(*sends[k].lane, launch.signature, bytes)
                            : simple_post(*sends[k].lane, launch.signature, bytes * sends[k].units);
    }
    for (std::uint32_t k = from.first; k < step.receives; k += from.step) {
      if (!serves<kLl>(lanes[k], from)) continue;
      kLl && !lanes[k].flag ? backend.take_ll_message(*lanes[k].lane) : take(*lanes[k].lane);
    }
    if (kLl) backend.join();
  }

  // Address of an extent of the step in this chunk.
  TUTTI_HOST_DEVICE std::byte* memory_of(const StraightStep& step, std::uint32_t extent) const {
    const StraightMemory& memory = launch.straight.memory[step.memory + extent];
    const std::uint64_t elements = memory.reused ? launch.ring_elements * ring_part : step.size * part;
    return *memory.base + memory.offset + elements * launch.element_bytes;
  }

  // Passes the extents of the chunk to the backend.
  TUTTI_HOST_DEVICE void find_memory(const StraightStep& step) {
    const bool plain = backend.plain();
    const Part own = backend.taken();
    for (std::uint32_t k = own.first; k < std::uint32_t{step.reads} + step.writes; k += own.step) {
      const StraightMemory& memory = launch.straight.memory[step.memory + k];
      std::byte* at = memory_of(step, k);
      if (k < step.reads) {
        plain ? backend.source(memory.index, at) : backend.source(memory.index, at, *memory.operand);
      } else {
        plain ? backend.target(memory.index, at) : backend.target(memory.index, at, *memory.operand);
      }
    }
  }

  // Runs a step that has no data in this chunk: flags only.
  TUTTI_HOST_DEVICE Progress exchange_flags(const StraightStep& step) {
    const StraightLane* lanes = launch.straight.lanes + step.lanes;
    const StraightLane* sends = lanes + step.receives;
    const Part from = part_of<false>(step, 0, step.receives);
    const Part to = part_of<false>(step, step.receives, step.sends);
    std::byte* none = nullptr;
    Progress progress = Progress::done;
    for (std::uint32_t ready = cursor.acquired + from.first; ready < step.receives; ready += from.step) {
      LaneState& lane = *lanes[ready].lane;
      if (!lanes[ready].flag || !backend.serves(&lane)) continue;
      progress = backend.await([&] { return receive_simple(lane, launch.signature, none); });
      if (progress == Progress::done) continue;
      block(step, ready, progress);
      break;
    }
    const Progress agreed = backend.agree(progress);
    if (agreed != Progress::done) return agreed;
    for (std::uint32_t k = from.first; k < step.receives; k += from.step)
      if (lanes[k].flag && backend.serves(lanes[k].lane)) take(*lanes[k].lane);
    for (std::uint32_t k = to.first; k < step.sends; k += to.step)
      if (sends[k].flag && backend.serves(sends[k].lane)) simple_post(*sends[k].lane, launch.signature, 0);
    return Progress::done;
  }

  // Records that the step is blocked at lane `ready`, and returns `progress`. Receiving lanes precede sending ones.
  TUTTI_HOST_DEVICE Progress block(const StraightStep& step, std::uint32_t ready, Progress progress) {
    const StraightLane& at = launch.straight.lanes[step.lanes + ready];
    cursor.acquired = ready;
    blocked.operand = at.operand;
    blocked.lane = at.lane;
    blocked.sends = ready >= step.receives;
    return progress;
  }
};

}  // namespace tutti
