// One end of a lane whose ends share no memory: slots and counters of its own. To an executor it is a mapped lane whose
// other end is the connection, which carries messages and credits between the two halves.
#pragma once

#include <cstdint>
#include <memory>

#include "src/base/status.h"
#include "transports/transport.h"

namespace tutti {

// The creator's deleter frees it.
using LaneMemory = std::shared_ptr<std::byte>;

// Where a half lies: its slots behind its counters, or apart from them. Then they may be a device's, which nobody
// touches but its thread blocks and a carrier that reaches them.
struct HalfMemory {
  LaneMemory control;
  LaneMemory slots;  // Null: behind it.
};

struct HalfLane {
  // Lanes of messages in Simple. Each goes one way: what partners share on coherent memory would have to travel here.
  static Status check(const LaneSpec& spec);
  // Size of the memory of a half that `check` accepts: the counters and the slots.
  static std::size_t memory_bytes(const LaneSpec& spec);
  static std::size_t slots_bytes(const LaneSpec& spec);
  static constexpr std::size_t kCounterBytes = 4096;  // Bytes before the slots.
  static LaneMemory allocate(std::size_t bytes);
  // Zeroed, whole pages, which stay where they are when the process forks: a device may map them.
  static Result<LaneMemory> allocate_shared(std::size_t bytes);
  // Page-aligned.
  HalfLane(std::uint32_t context, const LaneSpec& spec, LaneEnd end, HalfMemory memory);

  // So many that plans, which count on half of them, go on while credits are under way.
  static constexpr std::uint32_t kSlotShift = 3;
  static constexpr std::uint64_t kSlots = 1 << kSlotShift;

  HalfMemory memory;  // With its slots.
  LaneView view;
  LaneSpec spec;
  std::uint32_t context = 0;
  LaneEnd end = LaneEnd::writer;
  bool ready = false;          // Messages may be put: both ends know all they need.
  bool send_all = false;       // Credits: also those that would be told with later ones.
  std::uint64_t carried = 0;   // Messages that the connection has taken from the writer, or given to the reader.
  std::uint64_t left = 0;      // Writer: number of messages that need their slots no more.
  std::uint64_t reported = 0;  // Credits: as far as the other half knows, or as this half was told.
};

}  // namespace tutti
