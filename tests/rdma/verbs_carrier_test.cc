// Guarantees of the RDMA carrier, on two devices of a guest: rxe0 and rxe1.
#include "transports/verbs/verbs_carrier.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "tests/rdma/carriers.h"

namespace tutti::test {
namespace {

using Names = std::vector<std::string>;

// ---- Messages ----

void fill(std::byte* data, const MessageHead& head) {
  std::mt19937_64 random(head.lane * 1'000'003ULL + head.number);
  std::generate_n(data, head.bytes, [&] { return static_cast<std::byte>(random()); });
}

bool is_filled(const std::byte* data, const MessageHead& head) {
  std::mt19937_64 random(head.lane * 1'000'003ULL + head.number);
  return std::all_of(data, data + head.bytes, [&](std::byte byte) { return byte == static_cast<std::byte>(random()); });
}

struct DevicePair {
  const char* name;
  Names ours, theirs;
  std::uint32_t our_pairs = 1, their_pairs = 1;
};

class VerbsCarrierOver : public testing::TestWithParam<DevicePair> {};

INSTANTIATE_TEST_SUITE_P(
    , VerbsCarrierOver,
    testing::Values(DevicePair{"TwoDevices", {"rxe0"}, {"rxe1"}}, DevicePair{"OneDevice", {"rxe0"}, {"rxe0"}},
                    DevicePair{"TwoPorts", {"rxe0", "rxe1"}, {"rxe1", "rxe0"}},
                    DevicePair{"TwoPortsOfOneDevice", {"rxe0", "rxe0"}, {"rxe1", "rxe1"}},
                    DevicePair{"TwoPortsOfThree", {"rxe0", "rxe1", "rxe0"}, {"rxe1", "rxe0"}},
                    DevicePair{"ThreeQueuePairsOfFour", {"rxe0"}, {"rxe1"}, 4, 3},
                    DevicePair{
                        "TwoQueuePairsOfThree_OnTwoPortsOfThree", {"rxe0", "rxe1"}, {"rxe1", "rxe0", "rxe1"}, 2, 3}),
    [](const auto& pair) { return pair.param.name; });

// Lanes, sizes and the end that advances are random. A slot is reused as soon as its credit has returned and its
// message has left.
TEST_P(VerbsCarrierOver, DeliversMessagesOfAllSizesInOrder) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::uint32_t sizes[] = {0,
                                 1,
                                 kEagerBytes - 1,
                                 kEagerBytes,
                                 kEagerBytes + 1,
                                 4096,
                                 5000,
                                 (64 << 10) - 1,
                                 64 << 10,
                                 (64 << 10) + 1,
                                 kSlotBytes - 1,
                                 kSlotBytes};
  constexpr std::uint32_t kLanes = 5;
  constexpr std::uint64_t kMessages = 60;  // By lane.
  CarrierPair pair(GetParam().ours, GetParam().theirs, with_queue_pairs(GetParam().our_pairs),
                   with_queue_pairs(GetParam().their_pairs));
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) ASSERT_NO_FATAL_FAILURE(pair.connect(lane));
  std::map<std::uint32_t, std::uint64_t> put, came;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> bytes;
  pair.reader.on_arrival = [&](const MessageHead& head) {
    EXPECT_EQ(head.number, came[head.lane]++);
    EXPECT_EQ(head.bytes, (bytes[{head.lane, head.number}]));
    EXPECT_EQ(head.signature, head.lane * 1000 + head.number);
    EXPECT_TRUE(is_filled(slot_of(pair.reader.halves.at(head.lane).view, head.number), head)) << head.number;
  };
  std::map<std::uint32_t, std::uint64_t> reported;
  pair.until([&] {
    const std::uint32_t lane = random() % kLanes;
    const std::uint64_t number = put[lane];
    const std::uint64_t free = std::min(pair.writer.credits[lane], pair.writer.gone[lane]);
    if (number < kMessages && number - free < HalfLane::kSlots) {
      MessageHead head;
      head.lane = lane;
      head.number = number;
      head.bytes = bytes[{lane, number}] = sizes[random() % std::size(sizes)];
      fill(slot_of(pair.writer.halves.at(lane).view, number), head);
      const auto taken = pair.writer.put(lane, number, head.bytes);
      EXPECT_TRUE(taken.ok());
      if (taken.ok() && taken.value()) ++put[lane];
    }
    const std::uint32_t other = random() % kLanes;
    if (came[other] > reported[other] && random() % 4 == 0) {
      const auto credited = pair.reader.carrier->credit(other, came[other]);
      EXPECT_TRUE(credited.ok());
      if (credited.ok() && credited.value()) reported[other] = came[other];
    }
    return pair.reader.arrivals == kLanes * kMessages;
  });
  pair.until([&] {
    return std::all_of(put.begin(), put.end(),
                       [&](const auto& lane) { return pair.writer.gone[lane.first] == lane.second; });
  });
  pair.until([&] { return pair.writer.carrier->acknowledged() && pair.reader.carrier->acknowledged(); });
}

// A carrier with two connections, whose other ends are in the test.
class VerbsPaths : public testing::Test {
 protected:
  VerbsPaths(const Names& ports, std::uint16_t pairs)
      : writer_(ports, with_queue_pairs(pairs)), port_(ports_of({"rxe1"}).front()) {
    VerbsAddress address;
    address.port_count = static_cast<std::uint16_t>(ports.size());
    address.pairs_per_port = pairs;
    for (std::size_t i = 0; i < 2; ++i) {
      connections_.push_back(std::move(PortConnection::create(port_, {})).value());
      address.queue_pairs[i] = connections_[i]->address();
    }
    EXPECT_TRUE(writer_.carrier->connect(std::as_bytes(std::span(&address, 1))).ok());
  }
  void answer_on(std::size_t path) {
    VerbsAddress theirs;
    std::memcpy(&theirs, writer_.carrier->address().data(), sizeof theirs);
    ASSERT_TRUE(connections_[path]->connect(theirs.queue_pairs[path]).ok());
  }
  // On each port the carrier may write into a part of the slots.
  void attach(std::uint32_t lane, std::span<std::byte> first, std::span<std::byte> second) {
    VerbsLanding landing;
    landing.address = reinterpret_cast<std::uint64_t>(memory_.data());
    landing.bytes = memory_.size();
    std::size_t port = 0;
    for (const std::span<std::byte> part : {first, second}) {
      auto region = port_.device->register_memory(part.data(), part.size(), RegionUse::remote);
      landing.keys[port++] = region.value().get()->rkey;
      regions_.push_back(std::move(region).value());
    }
    HalfLane& half = writer_.add(lane, LaneEnd::writer);
    ASSERT_TRUE(writer_.carrier->attach(lane, half, std::as_bytes(std::span(&landing, 1))).ok());
  }
  void advance_until_left(std::uint32_t lane) {
    const Deadline deadline = Deadline::after_ms(60'000);
    while (writer_.gone[lane] == 0 && !deadline.passed()) {
      const Status advanced = writer_.advance();
      ASSERT_TRUE(advanced.ok()) << advanced.message();
    }
    EXPECT_EQ(writer_.gone[lane], 1U);
  }

  CarrierEnd writer_;
  VerbsPort port_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(HalfLane::kSlots * kSlotBytes);
  std::vector<MemoryRegion> regions_;
  std::vector<std::unique_ptr<PortConnection>> connections_;
};

class VerbsPorts : public VerbsPaths {
 protected:
  VerbsPorts() : VerbsPaths({"rxe0", "rxe0"}, 1) {}
};

class VerbsQueuePairs : public VerbsPaths {
 protected:
  VerbsQueuePairs() : VerbsPaths({"rxe0"}, 2) {}
};

TEST_F(VerbsPorts, CarryHalfOfLargeMessageEach) {
  answer_on(0);
  answer_on(1);
  const std::span<std::byte> slot = std::span(memory_).first(kSlotBytes);
  attach(0, slot.first(kSlotBytes / 2), slot.last(kSlotBytes / 2));
  ASSERT_TRUE(writer_.put(0, 0, kSlotBytes).value());
  advance_until_left(0);
}

TEST_F(VerbsPorts, KeepSlot_UntilAllPartsOfItsMessageHaveLeft) {
  answer_on(0);                                                              // No message completes on the other port.
  for (const std::uint32_t lane : {0U, 2U}) attach(lane, memory_, memory_);  // The lanes' own port is the first one.
  ASSERT_TRUE(writer_.put(0, 0, kSlotBytes).value());
  ASSERT_TRUE(writer_.put(0, 1, 8).value());
  ASSERT_TRUE(writer_.put(2, 0, 4096).value());
  advance_until_left(2);
  EXPECT_EQ(writer_.gone[0], 0U);
}

TEST_F(VerbsQueuePairs, TakeTurns) {
  answer_on(0);  // No message completes on the other queue pair.
  for (const std::uint32_t lane : {0U, 2U}) attach(lane, memory_, memory_);
  ASSERT_TRUE(writer_.put(0, 0, 4096).value());
  ASSERT_TRUE(writer_.put(0, 1, kSlotBytes).value());
  ASSERT_TRUE(writer_.put(2, 0, 4096).value());  // On the same queue pair as the first one.
  advance_until_left(2);
  EXPECT_EQ(writer_.gone[0], 1U);
  answer_on(1);
  const Deadline deadline = Deadline::after_ms(60'000);
  while (writer_.gone[0] < 2 && !deadline.passed()) ASSERT_TRUE(writer_.advance().ok());
  EXPECT_EQ(writer_.gone[0], 2U);
}

// ---- Flow control ----

// Posts small messages on many lanes until no lane has room. Returns their number.
std::uint64_t fill_up(CarrierEnd& end, std::map<std::uint32_t, std::uint64_t>& put, std::uint32_t lanes) {
  std::uint64_t count = 0;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    for (; put[lane] < HalfLane::kSlots; ++put[lane], ++count) {
      const auto taken = end.put(lane, put[lane], 8);
      EXPECT_TRUE(taken.ok());
      if (!taken.ok() || !taken.value()) break;
    }
  }
  return count;
}

TEST(VerbsCarrier, DoesNotExceedReceiveCapacity) {
  constexpr std::uint32_t kLanes = 80;
  for (const std::uint32_t pairs : {1U, 2U}) {
    CarrierPair pair({"rxe0"}, {"rxe1"}, with_queue_pairs(pairs));
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) pair.connect(lane, 64);
    std::map<std::uint32_t, std::uint64_t> put;
    std::uint64_t count = fill_up(pair.writer, put, kLanes);
    EXPECT_GT(count, pairs * PortConnection::kRecords / 2);
    EXPECT_LT(count, pairs * PortConnection::kRecords);
    // Acknowledgements of the device free no capacity while the other rank is idle.
    const Deadline deadline = Deadline::after_ms(60'000);
    while (!pair.writer.carrier->acknowledged() && !deadline.passed()) ASSERT_TRUE(pair.writer.advance().ok());
    EXPECT_TRUE(pair.writer.carrier->acknowledged());
    EXPECT_EQ(fill_up(pair.writer, put, kLanes), 0U);
    // The other rank sends no messages, but notifies the writer of free capacity.
    pair.until([&] {
      count += fill_up(pair.writer, put, kLanes);
      return pair.reader.arrivals == kLanes * HalfLane::kSlots;
    });
    EXPECT_EQ(count, kLanes * HalfLane::kSlots);
  }
}

TEST(VerbsCarrier, Continues_AfterBothEndsWereFull) {
  constexpr std::uint32_t kLanes = 200;
  CarrierPair pair({"rxe0"}, {"rxe1"});
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) pair.connect(lane, 64);
  std::map<std::uint32_t, std::uint64_t> put;
  std::uint32_t credited = 0;
  const auto credit_all = [&] {
    while (credited < 1000) {
      const auto reported = pair.reader.carrier->credit(credited % kLanes, credited);
      EXPECT_TRUE(reported.ok());
      if (!reported.ok() || !reported.value()) return;
      ++credited;
    }
  };
  pair.until([&] {
    fill_up(pair.writer, put, kLanes);
    credit_all();
    return pair.reader.arrivals == kLanes * HalfLane::kSlots && credited == 1000;
  });
}

// ---- Sleeping ----

// The completion of an immediate send has not been polled yet.
TEST(VerbsCarrier, DoesNotSleep_WhileSlotsAreFree) {
  CarrierPair pair({"rxe0"}, {"rxe1"});
  pair.connect(0);
  for (std::uint64_t number = 0; number < HalfLane::kSlots; ++number) {
    ASSERT_TRUE(pair.writer.put(0, number, 8).value());
    EXPECT_FALSE(pair.writer.carrier->arm());
    pair.until([&] { return pair.writer.gone[0] == number + 1; });
  }
}

TEST(VerbsCarrier, WakesSleepingThread) {
  for (const Names& names : {Names{"rxe1"}, Names{"rxe1", "rxe0"}}) {
    CarrierPair pair(names, names);
    pair.connect(0);
    pair.connect(1);
    for (std::uint64_t number = 0; number < 4; ++number) {
      pair.until([&] { return pair.writer.carrier->acknowledged() && pair.reader.carrier->acknowledged(); });
      ASSERT_TRUE(pair.reader.carrier->arm());
      pollfd waiting = {pair.reader.carrier->descriptor(), POLLIN, 0};
      ASSERT_EQ(::poll(&waiting, 1, 0), 0);
      ASSERT_TRUE(pair.writer.put(number % 2, number / 2, 100).value());
      ASSERT_EQ(::poll(&waiting, 1, 60'000), 1);
      EXPECT_FALSE(pair.reader.carrier->arm());  // arm() fails, because the event is pending.
      pair.until([&] { return pair.reader.arrivals == number + 1; });
    }
  }
}

// ---- Ends ----

TEST(VerbsCarrier, ReportsDeadPeer) {
  VerbsOptions hasty;
  hasty.timeout = 12;
  hasty.retry_count = 2;
  CarrierPair pair({"rxe0"}, {"rxe1"}, hasty);
  pair.connect(0);
  pair.reader.carrier.reset();
  ASSERT_TRUE(pair.writer.put(0, 0, 4096).value());
  const Deadline deadline = Deadline::after_ms(60'000);
  Status status;
  while (status.ok() && !deadline.passed()) status = pair.writer.advance();
  EXPECT_EQ(status.code(), Code::remote);
  for (const char* word : {"rxe0 port 1", "gid 1", "10.77.0.1", "10.77.0.2", "retry", "TUTTI_IB_HCA"})
    EXPECT_NE(status.message().find(word), std::string::npos) << word << " is not in: " << status.message();
  EXPECT_FALSE(pair.writer.carrier->acknowledged());
}

TEST(VerbsCarrier, ForgetsLanes) {
  CarrierPair pair({"rxe0"}, {"rxe1"});
  for (int time = 0; time < 2; ++time) {  // The second connection reuses the lane number.
    pair.connect(7);
    ASSERT_TRUE(pair.writer.put(7, 0, 10).value());
    ASSERT_TRUE(pair.writer.put(7, 1, 4096).value());
    pair.until([&] { return pair.reader.arrivals == 2 && pair.writer.gone[7] == 2; });
    pair.writer.carrier->forget(7, LaneEnd::writer);
    pair.reader.carrier->forget(7, LaneEnd::reader);
    EXPECT_FALSE(pair.writer.put(7, 2, 10).ok());
    pair.writer.halves.clear();
    pair.reader.halves.clear();
    pair.reader.arrivals = 0;
    pair.writer.gone.clear();
  }
}

}  // namespace
}  // namespace tutti::test
