// What a carrier over RDMA promises, on two devices of a guest: rxe0 and rxe1.
#include "transports/verbs/verbs_carrier.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "tests/rdma/carriers.h"

namespace tutti {
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

struct Way {
  const char* name;
  Names ours, theirs;
};

class VerbsCarrierOver : public testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(, VerbsCarrierOver,
                         testing::Values(Way{"TwoDevices", {"rxe0"}, {"rxe1"}}, Way{"OneDevice", {"rxe0"}, {"rxe0"}},
                                         Way{"TwoRails", {"rxe0", "rxe1"}, {"rxe1", "rxe0"}},
                                         Way{"TwoRailsOfOneDevice", {"rxe0", "rxe0"}, {"rxe1", "rxe1"}},
                                         Way{"TwoRailsOfThree", {"rxe0", "rxe1", "rxe0"}, {"rxe1", "rxe0"}}),
                         [](const auto& way) { return way.param.name; });

// Lanes, sizes and who goes on when are random. A slot is used again as soon as it has been credited and left.
TEST_P(VerbsCarrierOver, MessagesOfAllSizesArriveInOrder) {
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
  constexpr std::uint64_t kMessages = 60;  // Of each lane.
  CarrierPair pair(GetParam().ours, GetParam().theirs);
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) ASSERT_NO_FATAL_FAILURE(pair.connect(lane));
  std::map<std::uint32_t, std::uint64_t> put, came;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> bytes;
  pair.reader.on_arrival = [&](const MessageHead& head) {
    EXPECT_EQ(head.number, came[head.lane]++);
    EXPECT_EQ(head.bytes, (bytes[{head.lane, head.number}]));
    EXPECT_EQ(head.signature, head.lane * 1000 + head.number);
    EXPECT_TRUE(is_filled(slot_of(pair.reader.halves.at(head.lane).view, head.number), head)) << head.number;
  };
  std::map<std::uint32_t, std::uint64_t> told;
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
    if (came[other] > told[other] && random() % 4 == 0) {
      const auto credited = pair.reader.carrier->credit(other, came[other]);
      EXPECT_TRUE(credited.ok());
      if (credited.ok() && credited.value()) told[other] = came[other];
    }
    return pair.reader.arrivals == kLanes * kMessages;
  });
  pair.until([&] {
    return std::all_of(put.begin(), put.end(),
                       [&](const auto& lane) { return pair.writer.gone[lane.first] == lane.second; });
  });
  pair.until([&] { return pair.writer.carrier->acknowledged() && pair.reader.carrier->acknowledged(); });
}

// ---- Room ----

// Puts small messages of many lanes until there is no room. How many fit.
std::uint64_t fill_up(CarrierEnd& end, std::map<std::uint32_t, std::uint64_t>& put, std::uint32_t lanes) {
  std::uint64_t count = 0;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    for (; put[lane] < HalfLane::kSlots; ++put[lane], ++count) {
      const auto taken = end.put(lane, put[lane], 8);
      EXPECT_TRUE(taken.ok());
      if (!taken.ok() || !taken.value()) return count;
    }
  }
  return count;
}

TEST(VerbsCarrier, SendsNoMoreThanTheOtherEndHasRoomFor) {
  constexpr std::uint32_t kLanes = 40;
  CarrierPair pair({"rxe0"}, {"rxe1"});
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) pair.connect(lane, 64);
  std::map<std::uint32_t, std::uint64_t> put;
  std::uint64_t count = fill_up(pair.writer, put, kLanes);
  EXPECT_GT(count, Rail::kRecords / 2);
  EXPECT_LT(count, Rail::kRecords);
  // What has been acknowledged by the device makes no room while the other rank does nothing.
  const Deadline patience = Deadline::after_ms(60'000);
  while (!pair.writer.carrier->acknowledged() && !patience.passed()) ASSERT_TRUE(pair.writer.advance().ok());
  EXPECT_TRUE(pair.writer.carrier->acknowledged());
  EXPECT_EQ(fill_up(pair.writer, put, kLanes), 0U);
  // It says nothing itself, but that it has room again.
  pair.until([&] {
    count += fill_up(pair.writer, put, kLanes);
    return pair.reader.arrivals == kLanes * HalfLane::kSlots;
  });
  EXPECT_EQ(count, kLanes * HalfLane::kSlots);
}

TEST(VerbsCarrier, GoesOnAfterNeitherEndHadRoom) {
  constexpr std::uint32_t kLanes = 200;
  CarrierPair pair({"rxe0"}, {"rxe1"});
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) pair.connect(lane, 64);
  std::map<std::uint32_t, std::uint64_t> put;
  std::uint32_t credited = 0;
  const auto credit_all = [&] {
    while (credited < 1000) {
      const auto told = pair.reader.carrier->credit(credited % kLanes, credited);
      EXPECT_TRUE(told.ok());
      if (!told.ok() || !told.value()) return;
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

TEST(VerbsCarrier, WakesWhoSleeps) {
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
      EXPECT_FALSE(pair.reader.carrier->arm());  // And loses nothing of it.
      pair.until([&] { return pair.reader.arrivals == number + 1; });
    }
  }
}

// ---- Ends ----

TEST(VerbsCarrier, SaysThatAnEndIsDead) {
  VerbsOptions hasty;
  hasty.timeout = 12;
  hasty.retry_count = 2;
  CarrierPair pair({"rxe0"}, {"rxe1"}, hasty);
  pair.connect(0);
  pair.reader.carrier.reset();
  ASSERT_TRUE(pair.writer.put(0, 0, 4096).value());
  const Deadline patience = Deadline::after_ms(60'000);
  Status status;
  while (status.ok() && !patience.passed()) status = pair.writer.advance();
  EXPECT_EQ(status.code(), Code::remote);
  for (const char* word : {"rxe0 port 1", "gid 1", "10.77.0.1", "10.77.0.2", "retry", "TUTTI_IB_HCA"})
    EXPECT_NE(status.message().find(word), std::string::npos) << word << " is not in: " << status.message();
  EXPECT_FALSE(pair.writer.carrier->acknowledged());
}

TEST(VerbsCarrier, ForgetsLanes) {
  CarrierPair pair({"rxe0"}, {"rxe1"});
  for (int time = 0; time < 2; ++time) {  // The number comes again.
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

// ---- What is not so ----

TEST(VerbsCarrier, ConnectsToNoNonsense) {
  const auto refuses = [](const std::function<void(VerbsAddress&)>& spoil) {
    CarrierEnd one({"rxe0"}), other({"rxe1"});
    VerbsAddress address;
    std::memcpy(&address, other.carrier->address().data(), sizeof address);
    spoil(address);
    return !one.carrier->connect(std::as_bytes(std::span(&address, 1))).ok();
  };
  EXPECT_FALSE(refuses([](VerbsAddress&) {}));
  EXPECT_TRUE(refuses([](VerbsAddress& address) { address.version = 2; }));
  EXPECT_TRUE(refuses([](VerbsAddress& address) { address.rails = 0; }));
  EXPECT_TRUE(refuses([](VerbsAddress& address) { address.rails = kMostPorts + 1; }));
  EXPECT_TRUE(refuses([](VerbsAddress& address) { address.rail[0].mtu = 9; }));
  EXPECT_TRUE(refuses([](VerbsAddress& address) { address.rail[0].ethernet = 0; }));
  EXPECT_TRUE(refuses([](VerbsAddress& address) { address.rail[0].queue_pair = 1 << 24; }));
  CarrierEnd one({"rxe0"}), other({"rxe1"});
  std::vector<std::byte> shorter = other.carrier->address();
  shorter.pop_back();
  EXPECT_FALSE(one.carrier->connect(shorter).ok());
}

TEST(VerbsCarrier, AttachesToNoNonsense) {
  CarrierPair pair({"rxe0"}, {"rxe1"});
  const auto landing = std::move(pair.reader.carrier->land(0, pair.reader.add(0, LaneEnd::reader))).value();
  HalfLane& writing = pair.writer.add(0, LaneEnd::writer);
  EXPECT_FALSE(pair.writer.carrier->attach(0, writing, std::span(landing).first(landing.size() - 1)).ok());
  HalfLane& smaller = pair.writer.add(1, LaneEnd::writer, kSlotBytes / 2);
  EXPECT_FALSE(pair.writer.carrier->attach(0, smaller, landing).ok());
  EXPECT_TRUE(pair.writer.carrier->attach(0, writing, landing).ok());
}

TEST(VerbsCarrier, SaysThatAWriteWasRefused) {
  CarrierPair pair({"rxe0"}, {"rxe1"});
  auto bytes = std::move(pair.reader.carrier->land(0, pair.reader.add(0, LaneEnd::reader))).value();
  VerbsLanding landing;
  std::memcpy(&landing, bytes.data(), sizeof landing);
  landing.keys[0] ^= 0x5500;
  ASSERT_TRUE(
      pair.writer.carrier->attach(0, pair.writer.add(0, LaneEnd::writer), std::as_bytes(std::span(&landing, 1))).ok());
  ASSERT_TRUE(pair.writer.put(0, 0, 4096).value());
  const Deadline patience = Deadline::after_ms(60'000);
  Status status;
  while (status.ok() && !patience.passed()) status = pair.writer.advance();
  EXPECT_NE(status.message().find("rxe0 port 1"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("refuses"), std::string::npos) << status.message();
}

// A stranger that has got hold of the other end of a carrier with one lane.
class VerbsStranger : public testing::Test {
 protected:
  VerbsStranger() : end_({"rxe0"}) {
    auto rail = Rail::create(ports_of({"rxe1"}).front(), {});
    rail_ = std::move(rail).value();
    VerbsAddress ours, theirs;
    std::memcpy(&theirs, end_.carrier->address().data(), sizeof theirs);
    ours.rails = 1;
    ours.rail[0] = rail_->address();
    EXPECT_TRUE(rail_->connect(theirs.rail[0]).ok());
    EXPECT_TRUE(end_.carrier->connect(std::as_bytes(std::span(&ours, 1))).ok());
    EXPECT_TRUE(end_.carrier->land(0, end_.add(0, LaneEnd::reader, 128)).ok());
    right_.kind = RecordKind::eager;
    right_.head.bytes = 8;
  }
  // What the end makes of it.
  Status say(const VerbsRecord& record, std::size_t bytes) {
    const std::vector<std::byte> data(bytes);
    EXPECT_TRUE(rail_->send(record, data, {}).ok());
    const std::uint64_t before = end_.arrivals;
    const Deadline patience = Deadline::after_ms(60'000);
    Status status;
    while (status.ok() && end_.arrivals == before && !patience.passed()) status = end_.advance();
    return status;
  }
  void expect_refused(const VerbsRecord& record, std::size_t bytes) {
    const Status status = say(record, bytes);
    EXPECT_EQ(status.code(), Code::remote);
    EXPECT_NE(status.message().find("rxe0 port 1"), std::string::npos) << status.message();
    EXPECT_EQ(end_.arrivals, 0U);
  }
  CarrierEnd end_;
  std::unique_ptr<Rail> rail_;
  VerbsRecord right_;
};

TEST_F(VerbsStranger, IsHeardIfAllIsRight) { EXPECT_TRUE(say(right_, 8).ok()); }

TEST_F(VerbsStranger, MaySendNoUnknownRecord) {
  right_.kind = static_cast<RecordKind>(9);
  expect_refused(right_, 8);
}

TEST_F(VerbsStranger, MaySendNoMessageOfALaneThatIsNotRead) {
  right_.head.lane = 1;
  expect_refused(right_, 8);
}

TEST_F(VerbsStranger, MaySendNoMessageFarAhead) {
  right_.head.number = HalfLane::kSlots;
  expect_refused(right_, 8);
}

TEST_F(VerbsStranger, MaySendNoMessageTwice) {
  EXPECT_TRUE(say(right_, 8).ok());
  EXPECT_EQ(std::exchange(end_.arrivals, 0), 1U);
  expect_refused(right_, 8);
}

TEST_F(VerbsStranger, MaySendNoMoreThanASlot) {
  right_.head.bytes = 136;
  expect_refused(right_, 136);
}

TEST_F(VerbsStranger, MaySendNoOtherNumberOfBytesThanItSays) {
  right_.head.bytes = 16;
  expect_refused(right_, 8);
}

TEST_F(VerbsStranger, MaySendNoPartsOverRailsThatThereAreNot) {
  right_.kind = RecordKind::message;
  right_.parts = 2;
  expect_refused(right_, 0);
}

TEST_F(VerbsStranger, MaySendNoMessageWithoutParts) {
  right_.kind = RecordKind::message;
  right_.parts = 0;
  expect_refused(right_, 0);
}

}  // namespace
}  // namespace tutti
