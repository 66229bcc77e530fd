// Reactions to frames that another process sends, or a faulty peer: each is checked before it is used. The other end of
// the stand-in plugin's connections is made of plain sockets.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/file.h"
#include "tests/transports/specs.h"
#include "transports/net_plugin.h"
#include "transports/net_plugin/frame.h"

namespace tutti::test {
namespace {

constexpr std::uint32_t kSlotBytes = 4096;

class CountedEvents : public CarrierEvents {
 public:
  Status arrived(const MessageHead&) override {
    ++arrivals;
    return {};
  }
  Status credited(std::uint32_t, std::uint64_t taken) override {
    credits = taken;
    return {};
  }
  void left(std::uint32_t, std::uint64_t) override {}
  int arrivals = 0;
  std::uint64_t credits = 0;
};

class NetFrames : public testing::Test {
 protected:
  void SetUp() override {
    source_ = std::move(open_net_plugin({.plugins = NET_STAND_IN_V12})).value();
    carrier_ = std::move(source_->make()).value();
    const std::vector<std::byte> address = carrier_->address();
    ASSERT_EQ(address.size(), sizeof theirs_);
    std::memcpy(&theirs_, address.data(), sizeof theirs_);

    const File listener(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in mine = {};
    mine.sin_family = AF_INET;
    mine.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof mine;
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&mine), bytes), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&mine), &bytes), 0);
    NetAddress own;
    std::memcpy(own.handle.data(), &mine, sizeof mine);
    ASSERT_TRUE(carrier_->connect(std::as_bytes(std::span(&own, 1))).ok());

    const LaneSpec spec = spec_of(kSlotBytes, HalfLane::kSlotShift);
    LaneMemory memory = std::move(carrier_->allocate(HalfLane::memory_bytes(spec))).value();
    half_ = std::make_unique<HalfLane>(0, spec, LaneEnd::reader, HalfMemory{std::move(memory), nullptr});
    ASSERT_TRUE(carrier_->register_reader(0, *half_).ok());

    to_carrier_ = File(::socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(::connect(to_carrier_.get(), reinterpret_cast<const sockaddr*>(theirs_.handle.data()), sizeof mine), 0);
    ASSERT_TRUE(carrier_->advance(events_).ok());
    from_carrier_ = File(::accept(listener.get(), nullptr, nullptr));
    ASSERT_EQ(::send(from_carrier_.get(), "a", 1, 0), 1);
  }

  NetFrameHead valid(std::uint64_t number = 0) const {
    NetFrameHead head;
    head.token = theirs_.token;
    head.has_part = 1;
    head.part_bytes = 100;
    head.message = {.lane = 0, .bytes = 100, .number = number};
    return head;
  }
  // Sends a frame of `bytes`, by default as many as the head says. Returns the error, or "" once `arrivals` have
  // arrived.
  std::string after(const NetFrameHead& head, int arrivals, std::uint32_t bytes = 0) {
    if (bytes == 0) bytes = sizeof head + head.part_bytes;
    std::vector<std::byte> wire(sizeof bytes + bytes);
    std::memcpy(wire.data(), &bytes, sizeof bytes);
    std::memcpy(wire.data() + sizeof bytes, &head, std::min<std::size_t>(sizeof head, bytes));
    EXPECT_EQ(::send(to_carrier_.get(), wire.data(), wire.size(), MSG_NOSIGNAL), static_cast<ssize_t>(wire.size()));
    const Deadline deadline = Deadline::after_ms(30'000);
    while (!deadline.passed()) {
      const Status status = carrier_->advance(events_);
      if (!status.ok()) return status.message();
      if (events_.arrivals >= arrivals) return "";
    }
    return "nothing happened";
  }

  std::unique_ptr<CarrierSource> source_;
  std::unique_ptr<Carrier> carrier_;
  std::unique_ptr<HalfLane> half_;
  NetAddress theirs_;
  File to_carrier_, from_carrier_;
  CountedEvents events_;
};

constexpr int kNever = 1000;
constexpr const char* kOrder = "received a message in the wrong order, or longer than its slot";

TEST_F(NetFrames, Arrive_WhenValid) {
  EXPECT_EQ(after(valid(), 1), "");
  NetFrameHead part = valid(1);
  part.part_bytes = 60;
  EXPECT_EQ(after(part, 1), "");
  part.offset = 60;
  part.part_bytes = 40;
  EXPECT_EQ(after(part, 2), "");
}

TEST_F(NetFrames, AreRejected_WithoutToken) {
  NetFrameHead head = valid();
  ++head.token;
  EXPECT_EQ(after(head, kNever), "received a frame that is not from the peer, or damaged");
}

TEST_F(NetFrames, AreRejected_WhenShorterThanHead) {
  EXPECT_EQ(after(valid(), kNever, sizeof(NetFrameHead) - 1), "received a frame that is not from the peer, or damaged");
}

TEST_F(NetFrames, AreRejected_WhenPartsDoNotFit) {
  NetFrameHead head = valid();
  EXPECT_EQ(after(head, kNever, sizeof head + 99), "received a frame of 147 bytes whose parts have 148");
}

TEST_F(NetFrames, AreRejected_WithTooManyCredits) {
  NetFrameHead head = valid();
  head.credits = 0x1000'0000;  // Times the size of a credit: 2^32.
  EXPECT_EQ(after(head, kNever), "received a frame of 148 bytes whose parts have 4294967444");
}

TEST_F(NetFrames, AreRejected_ForUnknownLane) {
  NetFrameHead head = valid();
  head.message.lane = 1;
  EXPECT_EQ(after(head, kNever), "received a message for an unknown lane");
}

TEST_F(NetFrames, AreRejected_OutOfOrder) {
  EXPECT_EQ(after(valid(), 1), "");
  EXPECT_EQ(after(valid(0), kNever), kOrder);
}

TEST_F(NetFrames, AreRejected_WhenPartBeginsElsewhere) {
  NetFrameHead head = valid();
  head.offset = 1;
  head.part_bytes = 99;
  EXPECT_EQ(after(head, kNever), kOrder);
}

TEST_F(NetFrames, AreRejected_WhenPartIsLongerThanMessage) {
  NetFrameHead head = valid();
  head.message.bytes = 99;
  EXPECT_EQ(after(head, kNever), kOrder);
}

TEST_F(NetFrames, AreRejected_WhenMessageIsLongerThanSlot) {
  NetFrameHead head = valid();
  head.message.bytes = kSlotBytes + 1;
  EXPECT_EQ(after(head, kNever), kOrder);
}

TEST_F(NetFrames, AreRejected_WithoutFreeSlot) {
  for (std::uint64_t number = 0; number < HalfLane::kSlots; ++number)
    EXPECT_EQ(after(valid(number), static_cast<int>(number) + 1), "");
  EXPECT_EQ(after(valid(HalfLane::kSlots), kNever), "received a message without a free slot for it");
}

TEST_F(NetFrames, AreDropped_ForForgottenLane) {
  carrier_->forget(0, LaneEnd::reader);
  const std::weak_ptr<std::byte> memory = half_->memory.control;
  half_.reset();
  EXPECT_TRUE(memory.expired());
  const LaneSpec spec = spec_of(kSlotBytes, HalfLane::kSlotShift);
  const HalfLane other(0, spec, LaneEnd::reader,
                       {std::move(carrier_->allocate(HalfLane::memory_bytes(spec))).value(), nullptr});
  ASSERT_TRUE(carrier_->register_reader(1, other).ok());
  NetFrameHead head = valid();
  EXPECT_EQ(after(head, 0), "");
  head.message.lane = 1;
  EXPECT_EQ(after(head, 1), "");
  EXPECT_EQ(events_.arrivals, 1);
}

// A connection with a faulty frame is not read further.
TEST_F(NetFrames, AreNotRead_AfterFaultyFrame) {
  EXPECT_EQ(after(valid(), 1), "");
  NetFrameHead damaged = valid(1);
  EXPECT_TRUE(carrier_->expects_messages());
  ++damaged.token;
  EXPECT_NE(after(damaged, kNever), "nothing happened");
  EXPECT_FALSE(carrier_->expects_messages());
  (void)after(valid(1), kNever - 1);
  EXPECT_EQ(events_.arrivals, 1);
}

// Both ends complete the receives of the other one before they close.
TEST_F(NetFrames, SayGoodbye_WhenAnEndLeaves) {
  EXPECT_EQ(after(valid(), 1), "");
  EXPECT_EQ(::send(from_carrier_.get(), "pppppppp", kNetFrames, MSG_NOSIGNAL), kNetFrames) << "posts receives";
  std::byte goodbyes[kNetFrames][sizeof(std::uint32_t) + sizeof(NetFrameHead)];
  const Deadline deadline = Deadline::after_ms(30'000);
  const auto await = [&](const auto& done) {
    while (!done() && !deadline.passed()) EXPECT_TRUE(carrier_->advance(events_).ok());
    EXPECT_FALSE(deadline.passed());
  };
  (void)carrier_->finish();
  await([&] {
    return ::recv(from_carrier_.get(), goodbyes, sizeof goodbyes, MSG_PEEK | MSG_DONTWAIT) == sizeof goodbyes;
  });
  ASSERT_EQ(::recv(from_carrier_.get(), goodbyes, sizeof goodbyes, MSG_DONTWAIT), sizeof goodbyes);
  for (auto& goodbye : goodbyes) {
    std::uint32_t bytes = 0;
    NetFrameHead head;
    std::memcpy(&bytes, goodbye, sizeof bytes);
    std::memcpy(&head, goodbye + sizeof bytes, sizeof head);
    EXPECT_EQ(bytes, sizeof head);
    EXPECT_TRUE(head.is_goodbye != 0 && head.has_part == 0 && head.credits == 0);
    head.token = theirs_.token;
    std::memcpy(goodbye + sizeof bytes, &head, sizeof head);
  }
  EXPECT_TRUE(carrier_->expects_messages());
  EXPECT_EQ(::send(to_carrier_.get(), goodbyes, sizeof goodbyes, MSG_NOSIGNAL), sizeof goodbyes);
  await([&] { return carrier_->finish() && !carrier_->expects_messages(); });
}

// A peer that neither answers nor closes its connection does not keep this end.
TEST_F(NetFrames, AreNotAwaitedForEver_WhenAnEndLeaves) {
  EXPECT_EQ(after(valid(), 1), "");
  EXPECT_FALSE(carrier_->finish());
  const Deadline deadline = Deadline::after_ms(30'000);
  while (!carrier_->finish() && !deadline.passed()) EXPECT_TRUE(carrier_->advance(events_).ok());
  EXPECT_FALSE(deadline.passed());
}

TEST_F(NetFrames, RejectMalformedAddress) {
  auto other = std::move(source_->make()).value();
  NetAddress address;
  const auto bytes = std::as_bytes(std::span(&address, 1));
  EXPECT_EQ(other->connect(bytes.first(sizeof address - 1)).message(),
            "received a malformed address of a network plugin");
  address.frames = kNetFrames + 1;
  EXPECT_NE(other->connect(bytes).message().find("the peer runs another version of tutti"), std::string::npos);
}

}  // namespace
}  // namespace tutti::test
