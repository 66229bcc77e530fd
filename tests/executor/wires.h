// The lanes of a voyage, at both ends.
#pragma once

#include <map>
#include <memory>
#include <memory_resource>
#include <new>

#include "src/executor/lane_io.h"
#include "src/plan/lanes.h"
#include "tests/executor/voyage.h"
#include "transports/shm/shm_transport.h"

namespace tutti {

// The spec of a lane of a plan, as both ends name it.
LaneSpec spec_of(const LaneUse& use, Rank self, const Voyage& voyage, std::uint16_t channel);

// Both lanes of a spec, at both ends.
struct Wire {
  LaneState writing, reading, partner_writing, partner_reading;
};

class Wires {
 public:
  // Lanes lie in the transport's memory or, where an engine is given, in what that can reach.
  Wires(ShmTransport& transport, std::pmr::memory_resource* memory) : transport_(transport), memory_(memory) {}
  ~Wires() {
    for (auto& [spec, wire] : wires_) std::pmr::polymorphic_allocator<>(memory_).delete_object(wire);
  }
  Wires(const Wires&) = delete;
  Wires& operator=(const Wires&) = delete;

  LaneState* end(const LaneSpec& spec, bool forward, bool writes);
  const std::map<LaneSpec, Wire*>& all() const { return wires_; }

 private:
  LanePair lay(const LaneSpec& spec);

  ShmTransport& transport_;
  std::pmr::memory_resource* memory_;
  std::map<LaneSpec, Wire*> wires_;
};

}  // namespace tutti
