// One launch of a program on one channel: its operands, and its progress.
#pragma once

#include <cstdint>

#include "src/executor/straight.h"

namespace tutti {

// Constant during a run.
struct Launch {
  Straight straight;  // If the program is straight.
  RankBuffers self;
  // [rank], self included; for plans that name mapped memory. Behind them, the multicast addresses.
  const RankBuffers* peers = nullptr;
  Blocks input, output, scratch_blocks;
  Cut cut;
  std::uint32_t element_bytes = 1;
  std::uint32_t channel = 0;
  std::uint32_t channels = 1;
  std::uint64_t slice_elements = 0;  // Capacity of the smallest slot; longer messages are cut to slices.
  std::uint64_t ring_elements = 0;   // If loop.ring > 0: elements of the longest part, at which parts of scratch begin.
  bool even_if_empty = false;        // Messages without elements are sent nevertheless.
  RoundedStores rounded_stores = RoundedStores::none;  // Which stored values are rounded as sent; see src/plan/step.h.
  std::uint16_t group_bytes = 0;                       // Encoded bytes of cut.group elements.
  Loop loop;
  Signature signature;

  TUTTI_HOST_DEVICE std::uint64_t message_bytes(std::uint64_t elements) const {
    return cut.group == 1 ? elements * element_bytes : groups_of(elements, cut) * group_bytes;
  }
  // Scratch that is reused has parts of equal length: for each unit, those of the chunks of the ring.
  TUTTI_HOST_DEVICE bool reuses(const Operand& operand) const {
    return loop.ring > 0 && operand.space == Space::scratch;
  }
  TUTTI_HOST_DEVICE std::uint32_t ring_part(std::uint32_t chunk) const {
    return loop.ring == 0 ? 0 : chunk % loop.ring * channels + channel;
  }
  // Returns the first element of a part of a unit, in scratch that is reused.
  TUTTI_HOST_DEVICE std::uint64_t ring_offset(std::uint64_t unit, std::uint32_t part) const {
    return (unit * loop.ring * channels + part) * ring_elements;
  }
};
static_assert(sizeof(Launch) == 216);

// Position in the loops: iteration, stage, round, slice, step, from the outermost to the innermost.
struct Cursor {
  std::uint32_t iteration = 0;
  std::uint32_t stage = 0;  // Position in the stage order of the iteration.
  std::uint32_t round = 0;
  std::uint32_t slice = 0;
  std::uint32_t step = 0;
  std::uint32_t acquired = 0;  // Operands of the step that are ready.
  bool operator==(const Cursor&) const = default;
};
static_assert(sizeof(Cursor) == 24);

enum class Progress : std::uint8_t { done, waiting, mismatch };

}  // namespace tutti
