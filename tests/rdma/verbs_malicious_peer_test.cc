// The RDMA carrier validates all received data. On two devices of a guest: rxe0 and rxe1.
#include <cstring>
#include <functional>
#include <utility>

#include "tests/rdma/carriers.h"

namespace tutti::test {
namespace {

TEST(VerbsCarrier, RejectsInvalidAddress) {
  const auto refuses = [](const std::function<void(VerbsAddress&)>& spoil) {
    CarrierEnd one({"rxe0"}), other({"rxe1"});
    VerbsAddress address;
    std::memcpy(&address, other.carrier->address().data(), sizeof address);
    spoil(address);
    return !one.carrier->connect(std::as_bytes(std::span(&address, 1))).ok();
  };
  EXPECT_FALSE(refuses([](VerbsAddress&) {}));
  EXPECT_TRUE(refuses([](VerbsAddress& address) { address.version = kVerbsVersion + 1; }));
  EXPECT_TRUE(refuses([](VerbsAddress& address) { address.port_count = 0; }));
  EXPECT_TRUE(refuses([](VerbsAddress& address) { address.port_count = kMaxPorts + 1; }));
  EXPECT_TRUE(refuses([](VerbsAddress& address) { address.pairs_per_port = 0; }));
  EXPECT_TRUE(refuses([](VerbsAddress& address) { address.pairs_per_port = kMaxQueuePairs + 1; }));
  EXPECT_TRUE(refuses([](VerbsAddress& address) { address.queue_pairs[0].mtu = 9; }));
  EXPECT_TRUE(refuses([](VerbsAddress& address) { address.queue_pairs[0].ethernet = 0; }));
  EXPECT_TRUE(refuses([](VerbsAddress& address) { address.queue_pairs[0].queue_pair = 1 << 24; }));
  CarrierEnd one({"rxe0"}), other({"rxe1"});
  std::vector<std::byte> shorter = other.carrier->address();
  shorter.pop_back();
  EXPECT_FALSE(one.carrier->connect(shorter).ok());
}

TEST(VerbsCarrier, RejectsInvalidLanding) {
  CarrierPair pair({"rxe0"}, {"rxe1"});
  const auto landing = std::move(pair.reader.carrier->register_reader(0, pair.reader.add(0, LaneEnd::reader))).value();
  HalfLane& writing = pair.writer.add(0, LaneEnd::writer);
  EXPECT_FALSE(pair.writer.carrier->attach(0, writing, std::span(landing).first(landing.size() - 1)).ok());
  HalfLane& smaller = pair.writer.add(1, LaneEnd::writer, kSlotBytes / 2);
  EXPECT_FALSE(pair.writer.carrier->attach(0, smaller, landing).ok());
  EXPECT_TRUE(pair.writer.carrier->attach(0, writing, landing).ok());
}

TEST(VerbsCarrier, ReportsRejectedWrite) {
  CarrierPair pair({"rxe0"}, {"rxe1"});
  auto bytes = std::move(pair.reader.carrier->register_reader(0, pair.reader.add(0, LaneEnd::reader))).value();
  VerbsLanding landing;
  std::memcpy(&landing, bytes.data(), sizeof landing);
  landing.keys[0] ^= 0x5500;
  ASSERT_TRUE(
      pair.writer.carrier->attach(0, pair.writer.add(0, LaneEnd::writer), std::as_bytes(std::span(&landing, 1))).ok());
  ASSERT_TRUE(pair.writer.put(0, 0, 4096).value());
  const Deadline deadline = Deadline::after_ms(60'000);
  Status status;
  while (status.ok() && !deadline.passed()) status = pair.writer.advance();
  EXPECT_NE(status.message().find("rxe0 port 1"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("refuses"), std::string::npos) << status.message();
}

// A malicious peer at the other end of a carrier with one lane.
class VerbsMaliciousPeer : public testing::Test {
 protected:
  VerbsMaliciousPeer() : end_({"rxe0"}) {
    auto connection = PortConnection::create(ports_of({"rxe1"}).front(), {});
    connection_ = std::move(connection).value();
    VerbsAddress ours, theirs;
    std::memcpy(&theirs, end_.carrier->address().data(), sizeof theirs);
    ours.port_count = 1;
    ours.queue_pairs[0] = connection_->address();
    EXPECT_TRUE(connection_->connect(theirs.queue_pairs[0]).ok());
    EXPECT_TRUE(end_.carrier->connect(std::as_bytes(std::span(&ours, 1))).ok());
    EXPECT_TRUE(end_.carrier->register_reader(0, end_.add(0, LaneEnd::reader, 128)).ok());
    right_.kind = RecordKind::eager;
    right_.head.bytes = 8;
  }
  // Returns the result at the carrier.
  Status send_record(const VerbsRecord& record, std::size_t bytes) {
    const std::vector<std::byte> data(bytes);
    EXPECT_TRUE(connection_->send(record, data, {}).ok());
    const std::uint64_t before = end_.arrivals;
    const Deadline deadline = Deadline::after_ms(60'000);
    Status status;
    while (status.ok() && end_.arrivals == before && !deadline.passed()) status = end_.advance();
    return status;
  }
  void expect_refused(const VerbsRecord& record, std::size_t bytes) {
    const Status status = send_record(record, bytes);
    EXPECT_EQ(status.code(), Code::remote);
    EXPECT_NE(status.message().find("rxe0 port 1"), std::string::npos) << status.message();
    EXPECT_EQ(end_.arrivals, 0U);
  }
  CarrierEnd end_;
  std::unique_ptr<PortConnection> connection_;
  VerbsRecord right_;
};

TEST_F(VerbsMaliciousPeer, IsAccepted_WhenDataAreValid) { EXPECT_TRUE(send_record(right_, 8).ok()); }

TEST_F(VerbsMaliciousPeer, CannotSendUnknownRecord) {
  right_.kind = static_cast<RecordKind>(9);
  expect_refused(right_, 8);
}

TEST_F(VerbsMaliciousPeer, CannotSendMessage_OnUnreadLane) {
  right_.head.lane = 1;
  expect_refused(right_, 8);
}

TEST_F(VerbsMaliciousPeer, CannotSendMessageFarAhead) {
  right_.head.number = HalfLane::kSlots;
  expect_refused(right_, 8);
}

TEST_F(VerbsMaliciousPeer, CannotRepeatMessage) {
  EXPECT_TRUE(send_record(right_, 8).ok());
  EXPECT_EQ(std::exchange(end_.arrivals, 0), 1U);
  expect_refused(right_, 8);
}

TEST_F(VerbsMaliciousPeer, CannotRepeatMessage_AheadOfItsTurn) {
  right_.head.number = 1;
  const std::vector<std::byte> data(8);
  ASSERT_TRUE(connection_->send(right_, data, {}).ok());
  expect_refused(right_, 8);
}

TEST_F(VerbsMaliciousPeer, CannotExceedSlot) {
  right_.head.bytes = 136;
  expect_refused(right_, 136);
}

TEST_F(VerbsMaliciousPeer, CannotSendOtherLengthThanAnnounced) {
  right_.head.bytes = 16;
  expect_refused(right_, 8);
}

TEST_F(VerbsMaliciousPeer, CannotUseUnknownPorts) {
  right_.kind = RecordKind::message;
  right_.parts = 2;
  expect_refused(right_, 0);
}

TEST_F(VerbsMaliciousPeer, CannotSendMessageWithoutParts) {
  right_.kind = RecordKind::message;
  right_.parts = 0;
  expect_refused(right_, 0);
}

}  // namespace
}  // namespace tutti::test
