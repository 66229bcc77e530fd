// The lanes of a voyage, at both ends.
#pragma once

#include <map>
#include <memory>
#include <memory_resource>
#include <vector>

#include "src/executor/lane_io.h"
#include "src/plan/lanes.h"
#include "tests/executor/voyage.h"
#include "transports/shm/shm_transport.h"

namespace tutti::test {

// The spec of a lane of a plan, as both ends name it.
LaneSpec spec_of(const LaneUse& use, Rank self, const Voyage& voyage, std::uint16_t channel);

// Both lanes of a spec, at both ends.
struct Wire {
  LaneState writing, reading, partner_writing, partner_reading;
};

class Wires {
 public:
  // Their ends are in `memory`. Lanes lie in `lanes`, zeroed, or where that is null in the transport's memory.
  Wires(ShmTransport& transport, std::pmr::memory_resource* memory, std::pmr::memory_resource* lanes)
      : transport_(transport), memory_(memory), lanes_(lanes) {}
  ~Wires();
  Wires(const Wires&) = delete;
  Wires& operator=(const Wires&) = delete;

  LaneState* end(const LaneSpec& spec, bool forward, bool writes);
  const std::map<LaneSpec, Wire*>& all() const { return wires_; }

 private:
  LanePair lay(const LaneSpec& spec);

  ShmTransport& transport_;
  std::pmr::memory_resource* memory_;
  std::pmr::memory_resource* lanes_;
  std::vector<std::pair<std::byte*, std::size_t>> taken_;  // Of lanes_.
  std::map<LaneSpec, Wire*> wires_;
};

}  // namespace tutti::test
