// One end of a lane whose ends share no memory: slots and counters of its own. To an executor it is a mapped lane whose
// other end is the connection, which carries messages and credits between the two halves.
#pragma once

#include <cstdint>
#include <memory>

#include "src/base/status.h"
#include "transports/transport.h"

namespace tutti {

struct HalfLane {
  // Lanes of messages in bulk. Each goes one way: what partners share on coherent memory would have to travel here.
  static Status check(const LaneSpec& spec);
  HalfLane(std::uint32_t context, const LaneSpec& spec, LaneEnd end);

  // So many that plans, which count on half of them, go on while credits are under way.
  static constexpr std::uint32_t kSlotShift = 3;
  static constexpr std::uint64_t kSlots = 1 << kSlotShift;

  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte[], Free> memory;  // Null: the communicator has ended.
  LaneView view;
  LaneSpec spec;
  std::uint32_t context = 0;
  LaneEnd end = LaneEnd::writer;
  std::uint64_t carried = 0;  // Messages that the connection has taken from the writer, or given to the reader.
  std::uint64_t told = 0;     // Credits: as far as the other half knows, or as this half was told.
};

}  // namespace tutti
