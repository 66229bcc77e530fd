// Lanes of a test call with both ends.
#pragma once

#include <map>
#include <memory>
#include <memory_resource>
#include <vector>

#include "src/executor/lane_io.h"
#include "src/plan/lanes.h"
#include "tests/executor/test_call.h"
#include "transports/shm/shm_transport.h"

namespace tutti::test {

// Returns the spec of a lane of a plan; it is the same for both ends.
LaneSpec spec_of(const LaneUse& use, Rank self, const TestCall& test_call, std::uint16_t channel);

// Both lanes of a spec, with both ends.
struct TestLane {
  LaneState writing, reading, partner_writing, partner_reading;
};

class TestLanes {
 public:
  // Ends are allocated in `memory`. Lanes are allocated in `lanes`, which must be zeroed, or by the transport if
  // `lanes` is null.
  TestLanes(ShmTransport& transport, std::pmr::memory_resource* memory, std::pmr::memory_resource* lanes)
      : transport_(transport), memory_(memory), lanes_(lanes) {}
  ~TestLanes();
  TestLanes(const TestLanes&) = delete;
  TestLanes& operator=(const TestLanes&) = delete;

  LaneState* end(const LaneSpec& spec, bool forward, bool writes);
  const std::map<LaneSpec, TestLane*>& all() const { return lanes_made_; }

 private:
  LanePair lay(const LaneSpec& spec);

  ShmTransport& transport_;
  std::pmr::memory_resource* memory_;
  std::pmr::memory_resource* lanes_;
  std::vector<std::pair<std::byte*, std::size_t>> taken_;  // Allocations of lanes_.
  std::map<LaneSpec, TestLane*> lanes_made_;
};

}  // namespace tutti::test
