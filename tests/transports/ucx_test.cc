// Reactions of a UCX endpoint to a peer that closes lanes too early.
#include "transports/ucx.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "tests/transports/specs.h"

namespace tutti::test {
namespace {

constexpr std::uint32_t kSlotBytes = 4 << 20;  // Fetched in many parts.

class ReceivedEvents : public CarrierEvents {
 public:
  Status arrived(const MessageHead& head) override {
    ++arrived_[head.lane];
    return {};
  }
  Status credited(std::uint32_t, std::uint64_t) override { return {}; }
  void left(std::uint32_t lane, std::uint64_t messages) override { left_[lane] = messages; }

  std::map<std::uint32_t, std::uint64_t> arrived_, left_;
};

HalfLane half_of(Carrier& carrier, LaneEnd which, std::uint32_t slot_bytes) {
  const LaneSpec spec = spec_of(slot_bytes, HalfLane::kSlotShift);
  LaneMemory memory = std::move(carrier.allocate(HalfLane::memory_bytes(spec))).value();
  return {0, spec, which, {std::move(memory), nullptr}};
}

// Both ends, each with its own engine.
class UcxCarriers : public testing::Test {
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
  HalfLane half(int end, LaneEnd which, std::uint32_t slot_bytes = kSlotBytes) {
    return half_of(*ends_[end], which, slot_bytes);
  }
  void advance(int end) {
    const Status status = ends_[end]->advance(received_[end]);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  void advance() {
    for (int end = 0; end < 2; ++end) advance(end);
  }

  std::unique_ptr<Carrier> ends_[2];  // The first reads, the second writes.
  ReceivedEvents received_[2];
};

// The peer closes the lane before, during and after the fetch. A correct peer closes a lane only after its messages
// have left. The reader must keep memory into which UCX still writes.
TEST_F(UcxCarriers, KeepMemoryOfLaneClosedTooEarly_UntilMessageArrives) {
  constexpr std::uint32_t kLanes = 60;
  std::vector<std::weak_ptr<std::byte>> freed;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const HalfLane writing = half(1, LaneEnd::writer);
    {
      const HalfLane reading = half(0, LaneEnd::reader);
      freed.emplace_back(reading.memory.slots);
      const auto landing = ends_[0]->register_reader(lane, reading);
      ASSERT_TRUE(landing.ok());
      ASSERT_TRUE(ends_[1]->attach(lane, writing, landing.value()).ok());
      ASSERT_TRUE(ends_[1]->put({.lane = lane, .bytes = kSlotBytes}, slot_of(writing.view, 0)).ok());
      for (std::uint32_t step = 0; step < lane; ++step) advance();
      ends_[0]->forget(lane, LaneEnd::reader);
    }
    const Deadline deadline = Deadline::after_ms(30'000);
    while (received_[1].left_[lane] == 0 && !deadline.passed()) advance();
    ASSERT_EQ(received_[1].left_[lane], 1U) << "after " << lane << " steps";
    ends_[1]->forget(lane, LaneEnd::writer);
  }
  EXPECT_LT(received_[0].arrived_.size(), kLanes) << "none was closed too early";
  for (std::uint32_t lane = 0; lane + 1 < kLanes; ++lane) EXPECT_TRUE(freed[lane].expired()) << lane;
}

// Sends more messages than UCX's own buffers hold. UCX must send the rest while the writer waits for its calls to
// complete.
TEST_F(UcxCarriers, SendEverything_BeforeWriterCompletes) {
  constexpr std::uint32_t kLanes = 40, kBytes = 4096;
  std::vector<HalfLane> reading, writing;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    reading.push_back(half(0, LaneEnd::reader, kBytes));
    writing.push_back(half(1, LaneEnd::writer, kBytes));
    const auto landing = ends_[0]->register_reader(lane, reading.back());
    ASSERT_TRUE(landing.ok());
    ASSERT_TRUE(ends_[1]->attach(lane, writing.back(), landing.value()).ok());
    for (std::uint64_t number = 0; number < HalfLane::kSlots; ++number) {
      const MessageHead head = {.lane = lane, .bytes = kBytes, .number = number};
      ASSERT_TRUE(ends_[1]->put(head, slot_of(writing.back().view, number)).ok());
    }
  }
  const Deadline deadline = Deadline::after_ms(30'000);
  while (!ends_[1]->flushed() && !deadline.passed()) advance();
  ASSERT_TRUE(ends_[1]->flushed());
  const auto all_arrived = [&] {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      if (received_[0].arrived_[lane] < HalfLane::kSlots) return false;
    }
    return true;
  };
  while (!all_arrived() && !deadline.passed()) advance(0);
  EXPECT_TRUE(all_arrived());
}

// The peer does not respond, like a stopped process. The endpoint cancels its pending sends and frees their memory.
TEST_F(UcxCarriers, CloseWithoutPeer) {
  std::weak_ptr<std::byte> freed;
  {
    const HalfLane reading = half(0, LaneEnd::reader);
    const auto landing = ends_[0]->register_reader(0, reading);
    ASSERT_TRUE(landing.ok());
    const HalfLane writing = half(1, LaneEnd::writer);
    freed = writing.memory.slots;
    ASSERT_TRUE(ends_[1]->attach(0, writing, landing.value()).ok());
    ASSERT_TRUE(ends_[1]->put({.lane = 0, .bytes = kSlotBytes}, slot_of(writing.view, 0)).ok());
    ends_[1].reset();
  }
  EXPECT_TRUE(freed.expired());
}

// All ends of an engine that close one after the other, like those of a communicator, share one wait.
TEST(UcxSource, ClosesEndsTogether) {
  constexpr std::uint32_t kEnds = 6, kBytes = 4096;
  auto sources = std::pair(open_ucx(), open_ucx());
  if (!sources.first.ok()) GTEST_SKIP() << std::move(sources.first).status().message();
  std::vector<std::unique_ptr<Carrier>> ends, others;
  for (std::uint32_t i = 0; i < kEnds; ++i) {
    ends.push_back(std::move(sources.first.value()->make()).value());
    others.push_back(std::move(sources.second.value()->make()).value());
    ASSERT_TRUE(ends[i]->connect(others[i]->address()).ok());
    ASSERT_TRUE(others[i]->connect(ends[i]->address()).ok());
    const HalfLane reading = half_of(*others[i], LaneEnd::reader, kBytes);
    const HalfLane writing = half_of(*ends[i], LaneEnd::writer, kBytes);
    const auto landing = others[i]->register_reader(0, reading);
    ASSERT_TRUE(landing.ok());
    ASSERT_TRUE(ends[i]->attach(0, writing, landing.value()).ok());
    ASSERT_TRUE(ends[i]->put({.lane = 0, .bytes = kBytes}, slot_of(writing.view, 0)).ok());
  }
  const auto parting_ns = [&](std::uint32_t i) {
    const std::int64_t began = now_ns();
    ends[i].reset();
    return now_ns() - began;
  };
  const std::int64_t first = parting_ns(0);
  std::int64_t rest = 0;
  for (std::uint32_t i = 1; i < kEnds; ++i) rest += parting_ns(i);
  EXPECT_LT(rest, 3 * first);
}

}  // namespace
}  // namespace tutti::test
