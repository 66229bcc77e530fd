// What a connection between hosts promises: lanes in order, as far as there are slots and no farther, notes, and that
// whatever else comes over it ends it with a reason.
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
#include "src/executor/lane_io.h"
#include "tests/transports/loopback.h"

namespace tutti {
namespace {

constexpr Signature kSignature = {0x5eed};
constexpr std::uint32_t kSlotBytes = 64 * 1024;

LaneSpec spec(std::uint16_t tag, std::uint32_t slot_bytes = kSlotBytes) {
  LaneSpec lane;
  lane.writer = 0;
  lane.reader = 1;
  lane.tag = tag;
  lane.slot_bytes = slot_bytes;
  lane.slot_shift = 3;
  return lane;
}

// Both ends, driven by one thread.
struct Ends {
  Ends() {
    auto [first, second] = loopback_pair();
    writer = std::make_unique<TcpConnection>(std::move(first), false, "here");
    reader = std::make_unique<TcpConnection>(std::move(second), true, "there");
  }
  void advance() {
    writer->advance();
    if (reader) reader->advance();
  }
  template <typename Done>
  void until(const Done& done) {
    const Deadline patience = Deadline::after_ms(60'000);
    while (!done()) {
      ASSERT_FALSE(patience.passed()) << "it hangs";
      advance();
    }
  }
  LaneState writing(const LaneSpec& lane, std::uint32_t context = 0) {
    return {.view = std::move(writer->open(context, lane, LaneEnd::writer)).value()};
  }
  LaneState reading(const LaneSpec& lane, std::uint32_t context = 0) {
    return {.view = std::move(reader->open(context, lane, LaneEnd::reader)).value()};
  }
  std::unique_ptr<TcpConnection> writer, reader;
};

void post(LaneState& lane, const std::vector<std::byte>& message) {
  std::copy(message.begin(), message.end(), slot_of(lane.view, lane.next));
  bulk_post(lane, kSignature, message.size());
}

std::vector<std::byte> message_of(std::uint64_t number, std::size_t bytes) {
  std::mt19937_64 random(number);
  std::vector<std::byte> message(bytes);
  for (std::byte& byte : message) byte = static_cast<std::byte>(random());
  return message;
}

// Whether the next message is this one; takes it.
bool next_is(LaneState& lane, const std::vector<std::byte>& message) {
  const bool right = bulk_matches(lane, kSignature) &&
                     load_relaxed(&lane.view.words->lengths[lane.next % kMaxLengths]) == message.size() &&
                     std::equal(message.begin(), message.end(), slot_of(lane.view, lane.next));
  take(lane);
  return right;
}

TEST(TcpConnection, CarriesMessagesOfAllSizesInOrder) {
  Ends ends;
  LaneState out = ends.writing(spec(1));
  LaneState in = ends.reading(spec(1));
  const std::size_t sizes[] = {0, 1, 7, 8, 31, 32, 33, 4095, 8159, 8160, 8161, 8192, 20000, kSlotBytes - 1, kSlotBytes};
  constexpr std::uint64_t kMessages = 300;
  std::uint64_t received = 0;
  ends.until([&] {
    if (out.next < kMessages && slot_free(out)) post(out, message_of(out.next, sizes[out.next % std::size(sizes)]));
    while (bulk_arrived(in)) {
      EXPECT_TRUE(next_is(in, message_of(received, sizes[received % std::size(sizes)]))) << "message " << received;
      ++received;
    }
    return received == kMessages;
  });
}

TEST(TcpConnection, CarriesNoMoreThanThereAreSlots) {
  Ends ends;
  LaneState out = ends.writing(spec(1));
  LaneState in = ends.reading(spec(1));
  std::uint64_t fit = 0;
  for (; slot_free(out) && fit < 100; ++fit) post(out, message_of(fit, kSlotBytes));
  EXPECT_EQ(fit, HalfLane::kSlots);
  ends.until([&] { return load_acquire(&in.view.words->posted) == fit; });
  EXPECT_FALSE(slot_free(out));
  // Credits come back before the slots that plans count on have run out.
  for (std::uint64_t taken = 0; taken < fit / 2; ++taken) {
    ASSERT_TRUE(bulk_arrived(in));
    EXPECT_TRUE(next_is(in, message_of(taken, kSlotBytes)));
  }
  ends.until([&] { return slot_free(out); });
}

TEST(TcpConnection, TellsAllCreditsWhenAsked) {
  Ends ends;
  LaneState out = ends.writing(spec(1));
  LaneState in = ends.reading(spec(1));
  post(out, message_of(0, 10));
  ends.until([&] { return bulk_arrived(in); });
  take(in);
  for (int i = 0; i < 100; ++i) ends.advance();
  EXPECT_EQ(load_acquire(&out.view.credits->taken), 0U);  // One alone is not worth a message.
  ends.reader->tell_credits();
  ends.until([&] { return load_acquire(&out.view.credits->taken) == 1; });
}

TEST(TcpConnection, CarriesManyLanesBothWays) {
  Ends ends;
  constexpr std::uint16_t kLanes = 64;
  std::vector<LaneState> out, in, back, answers;
  for (std::uint16_t lane = 0; lane < kLanes; ++lane) {
    LaneSpec answer = spec(lane, 4096);
    std::swap(answer.writer, answer.reader);
    if (lane % 2 == 0) in.push_back(ends.reading(spec(lane, 4096)));  // Either end may be the first.
    out.push_back(ends.writing(spec(lane, 4096)));
    if (lane % 2 == 1) in.push_back(ends.reading(spec(lane, 4096)));
    back.push_back({.view = std::move(ends.reader->open(0, answer, LaneEnd::writer)).value()});
    answers.push_back({.view = std::move(ends.writer->open(0, answer, LaneEnd::reader)).value()});
  }
  constexpr std::uint64_t kMessages = 50;
  std::uint64_t answered = 0;
  ends.until([&] {
    for (std::uint16_t lane = 0; lane < kLanes; ++lane) {
      if (out[lane].next < kMessages && slot_free(out[lane])) post(out[lane], message_of(lane, 100 + lane));
      if (bulk_arrived(in[lane]) && slot_free(back[lane])) {
        EXPECT_TRUE(next_is(in[lane], message_of(lane, 100 + lane)));
        post(back[lane], message_of(lane + 1000, 3000));
      }
      if (bulk_arrived(answers[lane])) {
        EXPECT_TRUE(next_is(answers[lane], message_of(lane + 1000, 3000)));
        ++answered;
      }
    }
    return answered == kMessages * kLanes;
  });
}

TEST(TcpConnection, KeepsContextsApart) {
  Ends ends;
  LaneState first = ends.writing(spec(1), 1), second = ends.writing(spec(1), 2);
  LaneState in_first = ends.reading(spec(1), 1), in_second = ends.reading(spec(1), 2);
  post(first, message_of(1, 100));
  post(second, message_of(2, 100));
  ends.writer->send(2, message_of(3, 50));
  ends.until([&] { return bulk_arrived(in_first) && bulk_arrived(in_second); });
  EXPECT_TRUE(next_is(in_first, message_of(1, 100)));
  EXPECT_TRUE(next_is(in_second, message_of(2, 100)));
  EXPECT_FALSE(ends.reader->take(1));
  EXPECT_EQ(ends.reader->take(2), message_of(3, 50));
  EXPECT_NE(ends.writer->new_context(), ends.reader->new_context());
}

// A communicator that ends leaves the connection to the others, whatever was under way.
TEST(TcpConnection, OutlivesAContext) {
  Ends ends;
  LaneState out = ends.writing(spec(1), 1), other = ends.writing(spec(1), 2);
  LaneState in_other = ends.reading(spec(1), 2);
  (void)ends.reading(spec(1), 1);
  while (slot_free(out)) post(out, message_of(out.next, kSlotBytes));
  ends.writer->advance();  // Some of it is on its way,
  ends.writer->close(1);
  ends.reader->advance();
  ends.reader->close(1);  // and more than what has come.
  for (std::uint64_t i = 0; i < 20; ++i) {
    ends.until([&] { return slot_free(other); });
    post(other, message_of(i, kSlotBytes));
    ends.until([&] { return bulk_arrived(in_other); });
    EXPECT_TRUE(next_is(in_other, message_of(i, kSlotBytes)));
  }
}

TEST(TcpConnection, IsDrainedWhenTheSystemHasAll) {
  Ends ends;
  LaneState out = ends.writing(spec(1, 1 << 20));
  LaneState in = ends.reading(spec(1, 1 << 20));
  while (slot_free(out)) post(out, message_of(out.next, 1 << 20));
  ends.until([&] { return ends.writer->drained(0); });
  ends.until([&] { return load_acquire(&in.view.words->posted) == out.next; });
}

TEST(TcpConnection, SaysWhyItWasLost) {
  Ends ends;
  ends.reader.reset();
  ends.until([&] { return ends.writer->lost(); });
  EXPECT_NE(ends.writer->reason().find("(here)"), std::string::npos) << ends.writer->reason();
  EXPECT_TRUE(ends.writer->drained(0));
  ends.writer->send(0, {});
}

TEST(TcpConnection, RefusesLanesThatCannotBe) {
  Ends ends;
  EXPECT_FALSE(ends.writer->open(0, spec(1, 0), LaneEnd::writer).ok());
  EXPECT_FALSE(ends.writer->open(0, spec(1, 100), LaneEnd::writer).ok());
  EXPECT_FALSE(ends.writer->open(0, spec(1, 1U << 30), LaneEnd::writer).ok());
  LaneSpec lines = spec(1);
  lines.protocol = Protocol::lines;
  EXPECT_FALSE(ends.writer->open(0, lines, LaneEnd::writer).ok());
}

// ---- A peer that does not keep to the rules ----

class Strangers : public testing::Test {
 protected:
  Strangers() {
    auto [first, second] = loopback_pair();
    victim = std::make_unique<TcpConnection>(std::move(first), false, "here");
    stranger = std::move(second);
  }
  void say(WireHeader header, const std::vector<std::byte>& payload = {}, bool honest = true) {
    header.bytes = header.bytes == 0 ? static_cast<std::uint32_t>(payload.size()) : header.bytes;
    if (honest) header.check = check_of(header);
    std::vector<std::byte> bytes(sizeof header + payload.size());
    std::memcpy(bytes.data(), &header, sizeof header);
    if (!payload.empty()) std::memcpy(bytes.data() + sizeof header, payload.data(), payload.size());
    ASSERT_EQ(::send(stranger.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  void tell_lane(const LaneSpec& lane, std::uint32_t number) {
    WireHeader header;
    header.kind = WireKind::lane;
    header.lane = number;
    std::vector<std::byte> payload(sizeof lane);
    std::memcpy(payload.data(), &lane, sizeof lane);
    say(header, payload);
  }
  void expect_lost(const char* why) {
    const Deadline patience = Deadline::after_ms(60'000);
    while (!victim->lost() && !patience.passed()) victim->advance();
    ASSERT_TRUE(victim->lost()) << "it took " << why;
    EXPECT_NE(victim->reason().find(why), std::string::npos) << victim->reason();
  }
  std::unique_ptr<TcpConnection> victim;
  Socket stranger;
};

TEST_F(Strangers, MaySendNothingDamaged) {
  WireHeader header;
  header.check = check_of(header) + 1;
  say(header, {}, false);
  expect_lost("damaged");
}

TEST_F(Strangers, MaySendNoMessageWithoutALane) {
  say(WireHeader{.lane = 3});
  expect_lost("no such lane");
}

TEST_F(Strangers, MaySendNoMessageLongerThanASlot) {
  tell_lane(spec(1, 4096), 0);
  say(WireHeader{.bytes = 4097});
  expect_lost("longer than a slot");
}

TEST_F(Strangers, MaySendNoMessageTwice) {
  tell_lane(spec(1, 4096), 0);
  say(WireHeader{.number = 0});
  say(WireHeader{.number = 0});
  expect_lost("out of turn");
}

TEST_F(Strangers, MaySendNoMoreThanThereAreSlots) {
  tell_lane(spec(1, 4096), 0);
  for (std::uint64_t number = 0; number <= HalfLane::kSlots; ++number) say(WireHeader{.number = number});
  expect_lost("there is no slot");
}

TEST_F(Strangers, MayNotGiveCreditsForWhatWasNotSent) {
  LaneState out = {.view = std::move(victim->open(0, spec(1), LaneEnd::writer)).value()};
  post(out, message_of(0, 10));
  say(WireHeader{.kind = WireKind::credit, .number = 2});
  expect_lost("were not sent");
}

TEST_F(Strangers, MayNotTellOfALaneTwice) {
  tell_lane(spec(1), 0);
  tell_lane(spec(1), 1);
  expect_lost("twice");
}

TEST_F(Strangers, MayNotWriteWhatThisEndWrites) {
  LaneState out = {.view = std::move(victim->open(0, spec(1, 4096), LaneEnd::writer)).value()};
  tell_lane(spec(1, 4096), 0);
  expect_lost("this end writes");
  EXPECT_EQ(load_acquire(&out.view.words->posted), 0U);
}

TEST_F(Strangers, MayNotSendLongNotes) {
  say(WireHeader{.kind = WireKind::note, .bytes = kMostNoteBytes + 1});
  expect_lost("a note of");
}

// Whatever comes, it ends or waits, and touches nothing else: the sanitizers see to that.
TEST_F(Strangers, MayTalkNonsense) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int turn = 0; turn < 200; ++turn) {
    auto [first, second] = loopback_pair();
    victim = std::make_unique<TcpConnection>(std::move(first), false, "here");
    stranger = std::move(second);
    (void)victim->open(0, spec(1, 4096), LaneEnd::writer).ok();
    tell_lane(spec(static_cast<std::uint16_t>(random() % 3), 4096), random() % 2);
    for (int i = 0; i < 10 && !victim->lost(); ++i) {
      WireHeader header;
      header.kind = static_cast<WireKind>(random() % 6);
      header.lane = random() % 3;
      header.context = random() % 2;
      header.number = random() % 4;
      header.bytes = random() % 5000;
      say(header, std::vector<std::byte>(random() % 5000, std::byte{0x5a}));
      victim->advance();
    }
  }
}

}  // namespace
}  // namespace tutti
