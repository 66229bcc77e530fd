// Obeys a stretch of a straight program: the interpreter's short way. Host and device compile this source.
#pragma once

#include "src/executor/ports.h"

namespace tutti {

template <typename Machine>
struct StraightRun {
  const Launch& launch;
  Machine& machine;
  Cursor& cursor;
  Blocked& blocked;
  std::byte* outgoing;  // Where a small message is put together that is not simply copied.
  std::uint32_t part;   // Of the piece, on this channel.

  // From the cursor's step to `end`.
  template <bool kLines>
  TUTTI_HOST_DEVICE Progress until(std::uint32_t end) {
    for (; cursor.step < end; ++cursor.step) {
      const StraightStep& step = launch.straight.steps[cursor.step];
      const std::uint64_t count = part_count(step.count, step.size, part);
      const bool silent = count == 0 && !launch.even_if_empty;
      const Progress progress = silent ? exchange_flags(step) : run_step<kLines>(step, count);
      if (progress != Progress::done) return progress;
      cursor.acquired = 0;
    }
    return Progress::done;
  }

  template <bool kLines>
  TUTTI_HOST_DEVICE Progress run_step(const StraightStep& step, std::uint64_t count) {
    const StraightLane* lanes = launch.straight.lanes + step.lanes;
    const std::uint32_t lane_count = std::uint32_t{step.receives} + step.sends;
    const std::uint64_t bytes = count * launch.element_bytes;
    std::uint32_t ready = cursor.acquired;
    for (; ready < step.receives; ++ready) {
      const Progress progress = receive<kLines>(lanes[ready], bytes);
      if (progress != Progress::done) return block(step, ready, progress);
    }
    for (; ready < lane_count; ++ready) {
      const StraightLane& at = lanes[ready];
      if (!slot_free(*at.lane)) return block(step, ready, Progress::waiting);
      if (at.flag || at.copy) continue;
      machine.target(at.index, kLines ? outgoing : slot_of(at.lane->view, at.lane->next));
    }
    const std::byte* read = find_memory(step);
    if (step.outputs > 0) machine.fold(step.inputs, step.outputs, count, step.fold);
    for (std::uint32_t k = step.receives; k < lane_count; ++k) {
      const StraightLane& at = lanes[k];
      if (kLines && !at.flag) {
        send_lines(*at.lane, launch.signature, at.copy ? read : outgoing, bytes);
      } else {
        bulk_post(*at.lane, launch.signature);
      }
    }
    for (std::uint32_t k = 0; k < step.receives; ++k) take(*lanes[k].lane);
    return Progress::done;
  }

  template <bool kLines>
  TUTTI_HOST_DEVICE Progress receive(const StraightLane& at, std::uint64_t bytes) {
    std::byte* data = nullptr;
    const Progress progress =
        kLines && !at.flag ? receive_lines(*at.lane, launch.signature, bytes, machine.stage(at.index), data, blocked)
                           : receive_bulk(*at.lane, launch.signature, data);
    if (progress == Progress::done && !at.flag) machine.source(at.index, data);
    return progress;
  }

  // Tells the machine where the extents of the piece lie; returns the first that is read.
  TUTTI_HOST_DEVICE const std::byte* find_memory(const StraightStep& step) {
    const StraightMemory* memory = launch.straight.memory + step.memory;
    const std::uint64_t before = step.size * part * launch.element_bytes;
    const bool plain = machine.plain();
    std::byte* first = nullptr;
    for (std::uint32_t k = 0; k < step.reads; ++k, ++memory) {
      std::byte* at = *memory->base + memory->offset + before;
      if (k == 0) first = at;
      plain ? machine.source(memory->index, at) : machine.source(memory->index, at, *memory->operand);
    }
    for (std::uint32_t k = 0; k < step.writes; ++k, ++memory) {
      std::byte* at = *memory->base + memory->offset + before;
      plain ? machine.target(memory->index, at) : machine.target(memory->index, at, *memory->operand);
    }
    return first;
  }

  // Of a step that has no data in this piece.
  TUTTI_HOST_DEVICE Progress exchange_flags(const StraightStep& step) {
    const StraightLane* lanes = launch.straight.lanes + step.lanes;
    std::byte* none = nullptr;
    for (std::uint32_t ready = cursor.acquired; ready < step.receives; ++ready) {
      if (!lanes[ready].flag) continue;
      const Progress progress = receive_bulk(*lanes[ready].lane, launch.signature, none);
      if (progress != Progress::done) return block(step, ready, progress);
    }
    for (std::uint32_t k = 0; k < std::uint32_t{step.receives} + step.sends; ++k) {
      if (!lanes[k].flag) continue;
      if (k < step.receives) {
        take(*lanes[k].lane);
      } else {
        bulk_post(*lanes[k].lane, launch.signature);
      }
    }
    return Progress::done;
  }

  // At a lane of the step: those that it receives from come first.
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
