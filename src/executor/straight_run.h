// Runs part of a straight program: the interpreter's fast path. Host and device compile this source.
#pragma once

#include "src/executor/ports.h"

namespace tutti {

template <typename Backend>
struct StraightRun {
  const Launch& launch;
  Backend& backend;
  Cursor& cursor;
  Blocked& blocked;
  std::byte* outgoing;  // Staging buffer for LL messages that are not copied directly.
  std::uint32_t part;   // Index of the chunk among those of all channels.

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
    const StraightLane* lanes = launch.straight.lanes + step.lanes;
    const std::uint32_t lane_count = std::uint32_t{step.receives} + step.sends;
    const std::uint64_t bytes = launch.message_bytes(count);
    Progress progress = Progress::done;
    std::uint32_t ready = cursor.acquired;
    for (; ready < lane_count; ++ready) {
      progress = ready < step.receives ? receive<kLl>(lanes[ready], bytes) : reserve<kLl>(lanes[ready]);
      if (progress != Progress::done) break;
    }
    const std::byte* read = nullptr;
    if (progress == Progress::done) {
      read = find_memory(step);
    } else {
      block(step, ready);
    }
    progress = backend.agree(progress);
    if (progress != Progress::done) return progress;
    if (step.outputs > 0) backend.fold(step.inputs, step.outputs, count, step.fold);
    backend.join();
    release<kLl>(step, lanes, backend.copied(read), bytes);
    return Progress::done;
  }

  template <bool kLl>
  TUTTI_HOST_DEVICE Progress receive(const StraightLane& at, std::uint64_t bytes) {
    std::byte* data = nullptr;
    if (kLl && !at.flag) {
      const Progress progress = backend.receive_small(*at.lane, launch.signature, bytes, at.index, data, blocked);
      if (progress == Progress::done && backend.takes(at.index)) backend.source(at.index, data);
      return progress;
    }
    if (!backend.serves(at.lane)) return Progress::done;
    const Progress progress = backend.await([&] { return receive_simple(*at.lane, launch.signature, data); });
    if (progress != Progress::done || at.flag) return progress;
    backend.source(at.index, data);
    if (at.back != StraightLane::kNotBack) backend.target(at.back, data);
    return progress;
  }

  template <bool kLl>
  TUTTI_HOST_DEVICE Progress reserve(const StraightLane& at) {
    if (!backend.serves(at.lane)) return Progress::done;
    const Progress progress = backend.await([&] { return room_for_message(*at.lane); });
    if (progress != Progress::done || at.flag || at.copy) return progress;
    backend.target(at.index, kLl ? outgoing : slot_of(at.lane->view, at.lane->next));
    return progress;
  }

  template <bool kLl>
  TUTTI_HOST_DEVICE void release(const StraightStep& step, const StraightLane* lanes, const std::byte* read,
                                 std::uint64_t bytes) {
    const StraightLane* sends = lanes + step.receives;
    for (std::uint32_t k = 0; kLl && k < step.sends; ++k) {
      if (sends[k].flag) continue;
      backend.send_small(*sends[k].lane, launch.signature, sends[k].copy ? read : outgoing, bytes);
    }
    if (kLl) backend.join();
    for (std::uint32_t k = 0; k < step.sends; ++k) {
      if (!backend.serves(sends[k].lane)) continue;
      kLl && !sends[k].flag ? count_message(*sends[k].lane) : simple_post(*sends[k].lane, launch.signature, bytes);
    }
    for (std::uint32_t k = 0; k < step.receives; ++k) {
      if (backend.serves(lanes[k].lane)) take(*lanes[k].lane);
    }
    if (kLl) backend.join();  // All threads read the lane ends of LL messages.
  }

  // Passes the extents of the chunk to the backend. Returns the first extent that is read.
  TUTTI_HOST_DEVICE const std::byte* find_memory(const StraightStep& step) {
    const StraightMemory* memory = launch.straight.memory + step.memory;
    const std::uint64_t before = step.size * part * launch.element_bytes;
    const bool plain = backend.plain();
    std::byte* first = nullptr;
    for (std::uint32_t k = 0; k < step.reads; ++k, ++memory) {
      if (k > 0 && !backend.takes(k)) continue;
      std::byte* at = *memory->base + memory->offset + before;
      if (k == 0) first = at;
      if (!backend.takes(k)) continue;
      plain ? backend.source(memory->index, at) : backend.source(memory->index, at, *memory->operand);
    }
    for (std::uint32_t k = 0; k < step.writes; ++k, ++memory) {
      if (!backend.takes(step.reads + k)) continue;
      std::byte* at = *memory->base + memory->offset + before;
      plain ? backend.target(memory->index, at) : backend.target(memory->index, at, *memory->operand);
    }
    return first;
  }

  // Runs a step that has no data in this chunk: flags only.
  TUTTI_HOST_DEVICE Progress exchange_flags(const StraightStep& step) {
    const StraightLane* lanes = launch.straight.lanes + step.lanes;
    std::byte* none = nullptr;
    Progress progress = Progress::done;
    for (std::uint32_t ready = cursor.acquired; ready < step.receives; ++ready) {
      LaneState& lane = *lanes[ready].lane;
      if (!lanes[ready].flag || !backend.serves(&lane)) continue;
      progress = backend.await([&] { return receive_simple(lane, launch.signature, none); });
      if (progress == Progress::done) continue;
      block(step, ready);
      break;
    }
    progress = backend.agree(progress);
    if (progress != Progress::done) return progress;
    for (std::uint32_t k = 0; k < std::uint32_t{step.receives} + step.sends; ++k) {
      if (!lanes[k].flag || !backend.serves(lanes[k].lane)) continue;
      if (k < step.receives) {
        take(*lanes[k].lane);
      } else {
        simple_post(*lanes[k].lane, launch.signature, 0);
      }
    }
    return Progress::done;
  }

  // Records that the step is blocked at lane `ready`; receiving lanes precede sending ones.
  TUTTI_HOST_DEVICE void block(const StraightStep& step, std::uint32_t ready) {
    const StraightLane& at = launch.straight.lanes[step.lanes + ready];
    cursor.acquired = ready;
    blocked.operand = at.operand;
    blocked.lane = at.lane;
    blocked.sends = ready >= step.receives;
  }
};

}  // namespace tutti
