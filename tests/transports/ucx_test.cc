// What an end of UCX does when the other closes lanes as it should not.
#include "transports/ucx.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "tests/transports/specs.h"

namespace tutti {
namespace {

constexpr std::uint32_t kSlotBytes = 4 << 20;  // Fetched in many parts.

class Heard : public CarrierEvents {
 public:
  Status arrived(const MessageHead& head) override {
    ++arrived_[head.lane];
    return {};
  }
  Status credited(std::uint32_t, std::uint64_t) override { return {}; }
  void left(std::uint32_t lane, std::uint64_t messages) override { left_[lane] = messages; }

  std::map<std::uint32_t, std::uint64_t> arrived_, left_;
};

// Both ends, each with an engine of its own.
class UcxEnds : public testing::Test {
 protected:
  void SetUp() override {
    for (std::unique_ptr<Carrier>& end : ends_) {
      auto source = open_ucx();
      if (!source.ok()) GTEST_SKIP() << std::move(source).status().message();
      end = std::move(source.value()->make()).value();
    }
    for (int end = 0; end < 2; ++end) {
      const Status connected = ends_[end]->connect(ends_[1 - end]->address());
      ASSERT_TRUE(connected.ok()) << connected.message();
    }
  }
  static LaneSpec spec() { return spec_of(kSlotBytes, HalfLane::kSlotShift); }
  HalfLane half(int end, LaneEnd which) {
    LaneMemory memory = std::move(ends_[end]->allocate(HalfLane::memory_bytes(spec()))).value();
    return {0, spec(), which, {std::move(memory), nullptr}};
  }
  void advance() {
    for (int end = 0; end < 2; ++end) {
      const Status status = ends_[end]->advance(heard_[end]);
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }

  std::unique_ptr<Carrier> ends_[2];  // The first reads, the second writes.
  Heard heard_[2];
};

// Before, while and after it is fetched. An end that keeps to the rules does not close a lane before its messages have
// left; this one says so, and the reader must not let go of what UCX still writes into.
TEST_F(UcxEnds, KeepTheMemoryOfALaneThatWasClosedTooEarlyUntilItsMessageHasCome) {
  constexpr std::uint32_t kLanes = 60;
  std::vector<std::weak_ptr<std::byte>> freed;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const HalfLane writing = half(1, LaneEnd::writer);
    {
      const HalfLane reading = half(0, LaneEnd::reader);
      freed.emplace_back(reading.memory.slots);
      const auto landing = ends_[0]->land(lane, reading);
      ASSERT_TRUE(landing.ok());
      ASSERT_TRUE(ends_[1]->attach(lane, writing, landing.value()).ok());
      ASSERT_TRUE(ends_[1]->put({.lane = lane, .bytes = kSlotBytes}, slot_of(writing.view, 0)).ok());
      for (std::uint32_t step = 0; step < lane; ++step) advance();
      ends_[0]->forget(lane, LaneEnd::reader);
    }
    const Deadline deadline = Deadline::after_ms(30'000);
    while (heard_[1].left_[lane] == 0 && !deadline.passed()) advance();
    ASSERT_EQ(heard_[1].left_[lane], 1U) << "after " << lane << " steps";
    ends_[1]->forget(lane, LaneEnd::writer);
  }
  EXPECT_LT(heard_[0].arrived_.size(), kLanes) << "none was closed too early";
  for (std::uint32_t lane = 0; lane + 1 < kLanes; ++lane) EXPECT_TRUE(freed[lane].expired()) << lane;
}

}  // namespace
}  // namespace tutti
