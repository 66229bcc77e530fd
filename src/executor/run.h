// One launch of a program on one channel: what it works on, and how far it has come.
#pragma once

#include <cstdint>

#include "src/executor/straight.h"

namespace tutti {

// Constant during a run.
struct Launch {
  Straight straight;  // If the program is such.
  RankBuffers self;
  std::byte* scratch = nullptr;
  const RankBuffers* peers = nullptr;  // Of every rank, where the plan names mapped memory; self included.
  Blocks input, output, scratch_blocks;
  Cut cut;
  std::uint32_t element_bytes = 1;
  std::uint32_t channel = 0;
  std::uint32_t channels = 1;
  std::uint64_t slice_elements = 0;  // What the smallest slot holds; longer messages go in slices.
  bool even_if_empty = false;        // Messages without elements are sent nevertheless.
  Keeps keeps = Keeps::nothing;      // Of what such messages carry: see src/plan/step.h.
  std::uint16_t group_bytes = 0;     // Of cut.group elements that a message carries encoded together.
  Loop loop;
  Signature signature;

  TUTTI_HOST_DEVICE std::uint64_t message_bytes(std::uint64_t elements) const {
    return cut.group == 1 ? elements * element_bytes : groups_of(elements, cut) * group_bytes;
  }
};
static_assert(sizeof(Launch) == 208);

// The next thing to do: for turn: for stage: for round: for slice: for step.
struct Cursor {
  std::uint32_t turn = 0;
  std::uint32_t stage = 0;  // Position in the order of the turn.
  std::uint32_t round = 0;
  std::uint32_t slice = 0;
  std::uint32_t step = 0;
  std::uint32_t acquired = 0;  // Operands of the step that are ready.
  bool operator==(const Cursor&) const = default;
};
static_assert(sizeof(Cursor) == 24);

enum class Progress : std::uint8_t { done, waiting, mismatch };

}  // namespace tutti
