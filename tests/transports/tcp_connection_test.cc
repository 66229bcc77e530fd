// Invalid data on a connection ends it with a reason.
#include "transports/tcp/connection.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "src/base/clock.h"
#include "tests/transports/ends.h"
#include "tests/transports/loopback.h"

namespace tutti::test {
namespace {

LaneSpec spec(std::uint16_t tag, std::uint32_t slot_bytes = 64 << 10) { return lane_of(tag, slot_bytes); }

// ---- A peer that violates the protocol ----

class TcpMaliciousPeer : public testing::Test {
 protected:
  TcpMaliciousPeer() {
    auto [first, second] = loopback_pair();
    victim = std::make_unique<TcpConnection>(std::move(first), false, "here");
    peer = std::move(second);
  }
  void send_frame(TcpFrameHeader header, const std::vector<std::byte>& payload = {}, bool honest = true) {
    header.bytes = header.bytes == 0 ? static_cast<std::uint32_t>(payload.size()) : header.bytes;
    if (honest) header.check = check_of(header);
    std::vector<std::byte> bytes(sizeof header + payload.size());
    std::memcpy(bytes.data(), &header, sizeof header);
    if (!payload.empty()) std::memcpy(bytes.data() + sizeof header, payload.data(), payload.size());
    ASSERT_EQ(::send(peer.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  void notify_lane(const LaneSpec& lane, std::uint32_t number) {
    TcpFrameHeader header;
    header.kind = TcpFrameKind::lane;
    header.lane = number;
    std::vector<std::byte> payload(sizeof lane);
    std::memcpy(payload.data(), &lane, sizeof lane);
    send_frame(header, payload);
  }
  void expect_lost(const char* why) {
    const Deadline deadline = Deadline::after_ms(60'000);
    while (!victim->lost() && !deadline.passed()) victim->advance();
    ASSERT_TRUE(victim->lost()) << "it took " << why;
    EXPECT_NE(victim->reason().find(why), std::string::npos) << victim->reason();
  }
  std::unique_ptr<TcpConnection> victim;
  Socket peer;
};

TEST_F(TcpMaliciousPeer, CannotSendDamagedHeader) {
  TcpFrameHeader header;
  header.check = check_of(header) + 1;
  send_frame(header, {}, false);
  expect_lost("damaged");
}

TEST_F(TcpMaliciousPeer, CannotSendMessage_OnUnknownLane) {
  send_frame(TcpFrameHeader{.lane = 3});
  expect_lost("unknown lane");
}

TEST_F(TcpMaliciousPeer, CannotSendMessageLongerThanSlot) {
  notify_lane(spec(1, 4096), 0);
  send_frame(TcpFrameHeader{.bytes = 4097});
  expect_lost("longer than its slot");
}

TEST_F(TcpMaliciousPeer, CannotRepeatMessage) {
  notify_lane(spec(1, 4096), 0);
  send_frame(TcpFrameHeader{.number = 0});
  send_frame(TcpFrameHeader{.number = 0});
  expect_lost("in the wrong order");
}

TEST_F(TcpMaliciousPeer, CannotExceedSlots) {
  notify_lane(spec(1, 4096), 0);
  for (std::uint64_t number = 0; number <= HalfLane::kSlots; ++number) send_frame(TcpFrameHeader{.number = number});
  expect_lost("without a free slot");
}

TEST_F(TcpMaliciousPeer, CannotCreditUnsentMessages) {
  LaneState out = {.view = std::move(victim->open(0, spec(1), LaneEnd::writer)).value()};
  post(out, message_of(0, 10));
  send_frame(TcpFrameHeader{.kind = TcpFrameKind::credit, .number = 2});
  expect_lost("were not sent");
}

TEST_F(TcpMaliciousPeer, CannotAnnounceLaneTwice) {
  notify_lane(spec(1), 0);
  notify_lane(spec(1), 1);
  expect_lost("twice");
}

TEST_F(TcpMaliciousPeer, CannotWriteLaneOfThisEnd) {
  LaneState out = {.view = std::move(victim->open(0, spec(1, 4096), LaneEnd::writer)).value()};
  notify_lane(spec(1, 4096), 0);
  expect_lost("this end writes");
  EXPECT_EQ(load_acquire(&out.view.words->posted), 0U);
}

TEST_F(TcpMaliciousPeer, CannotSendLongNotes) {
  send_frame(TcpFrameHeader{.kind = TcpFrameKind::note, .bytes = kMaxNoteBytes + 1});
  expect_lost("a note of");
}

// Random data end the connection or leave it waiting, without access to other memory, which sanitizers check.
TEST_F(TcpMaliciousPeer, MaySendRandomData) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int iteration = 0; iteration < 200; ++iteration) {
    auto [first, second] = loopback_pair();
    victim = std::make_unique<TcpConnection>(std::move(first), false, "here");
    peer = std::move(second);
    (void)victim->open(0, spec(1, 4096), LaneEnd::writer).ok();
    notify_lane(spec(static_cast<std::uint16_t>(random() % 3), 4096), random() % 2);
    for (int i = 0; i < 10 && !victim->lost(); ++i) {
      TcpFrameHeader header;
      header.kind = static_cast<TcpFrameKind>(random() % 6);
      header.lane = random() % 3;
      header.context = random() % 2;
      header.number = random() % 4;
      header.bytes = random() % 5000;
      send_frame(header, std::vector<std::byte>(random() % 5000, std::byte{0x5a}));
      victim->advance();
    }
  }
}

}  // namespace
}  // namespace tutti::test
