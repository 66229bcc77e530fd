// One end of a lane whose ends share no memory. Each half has slots and counters of its own. Executors use it like a
// mapped lane; the connection moves messages and credits between the two halves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "src/base/atomic.h"
#include "src/base/status.h"
#include "transports/transport.h"

namespace tutti {

// Memory with the deleter of its creator.
using LaneMemory = std::shared_ptr<std::byte>;

// Memory of a half. The slots follow the counters, or are separate. Separate slots may be in device memory, which only
// thread blocks and carriers access.
struct HalfMemory {
  LaneMemory control;
  LaneMemory slots;  // Null: the slots follow the counters.
};

struct HalfLane {
  // Fails unless a network can carry the lane: it uses Simple or LL, with slots of a valid size. Halves are always
  // one-way, because sharing slots with a partner lane would cost transfers here. Slots of LL must be zeroed, and the
  // carrier must support LL: the reader takes messages before the connection reports them.
  static Status check(const LaneSpec& spec);
  // Bytes of a half, with counters and slots. `spec` must pass check().
  static std::size_t memory_bytes(const LaneSpec& spec);
  static std::size_t slots_bytes(const LaneSpec& spec);
  static constexpr std::size_t kCounterBytes = 4096;  // Bytes before the slots.
  static LaneMemory allocate(std::size_t bytes);
  // Allocates zeroed memory of whole pages. A fork() does not copy the pages, because a device may map them.
  static Result<LaneMemory> allocate_shared(std::size_t bytes);
  // `memory` must be page-aligned.
  HalfLane(std::uint32_t context, const LaneSpec& spec, LaneEnd end, HalfMemory memory);

  // Plans count on half of the slots, so that they proceed while credits are in transit.
  static constexpr std::uint32_t kSlotShift = 3;
  static constexpr std::uint64_t kSlots = 1 << kSlotShift;

  // Reader: messages that were delivered and consumed. A thread block may take a message of LL before it is delivered.
  std::uint64_t consumed() const { return std::min<std::uint64_t>(load_acquire(&view.credits->taken), carried); }

  HalfMemory memory;  // Its `slots` are always set.
  LaneView view;
  LaneSpec spec;
  std::uint32_t context = 0;
  LaneEnd end = LaneEnd::writer;
  bool ready = false;          // Both ends are ready, so messages may be sent.
  bool send_all = false;       // Send credits at once, without batching.
  std::uint64_t carried = 0;   // Messages that the connection took from the writer or delivered to the reader.
  std::uint64_t left = 0;      // Writer: number of messages whose slots are free again.
  std::uint64_t reported = 0;  // Credits that were sent to the other half, or received from it.
};

}  // namespace tutti
