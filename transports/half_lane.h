// One end of a lane whose ends share no memory: slots and counters of its own. To an executor it is a mapped lane whose
// other end is the connection, which carries messages and credits between the two halves.
#pragma once

#include <cstdint>
#include <memory>

#include "src/base/status.h"
#include "transports/transport.h"

namespace tutti {

// Whoever made it frees it.
using LaneMemory = std::shared_ptr<std::byte>;

struct HalfLane {
  // Lanes of messages in bulk. Each goes one way: what partners share on coherent memory would have to travel here.
  static Status check(const LaneSpec& spec);
  // Of a half that `check` has passed.
  static std::size_t memory_bytes(const LaneSpec& spec);
  static LaneMemory allocate(std::size_t bytes);
  // Zeroed, whole pages, which stay where they are when the process forks: a device may map them.
  static Result<LaneMemory> allocate_shared(std::size_t bytes);
  // `memory` of memory_bytes(), page-aligned.
  HalfLane(std::uint32_t context, const LaneSpec& spec, LaneEnd end, LaneMemory memory);

  // So many that plans, which count on half of them, go on while credits are under way.
  static constexpr std::uint32_t kSlotShift = 3;
  static constexpr std::uint64_t kSlots = 1 << kSlotShift;

  LaneMemory memory;
  LaneView view;
  LaneSpec spec;
  std::uint32_t context = 0;
  LaneEnd end = LaneEnd::writer;
  bool ready = false;         // Messages may be put: both ends know all they need.
  bool tell_all = false;      // Credits: also those that would be told with later ones.
  std::uint64_t carried = 0;  // Messages that the connection has taken from the writer, or given to the reader.
  std::uint64_t left = 0;     // Of those of the writer, they that need their slots no more.
  std::uint64_t told = 0;     // Credits: as far as the other half knows, or as this half was told.
};

}  // namespace tutti
