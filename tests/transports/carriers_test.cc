// Reactions of a connection to a faulty carrier.
#include <gtest/gtest.h>
#include <poll.h>

#include <array>

#include "tests/transports/ends.h"
#include "tests/transports/memory_carrier.h"

namespace tutti::test {
namespace {

struct Faulty {
  Fault writer = Fault::none, reader = Fault::none;
  bool required = true;
};

class FaultyCarrier : public testing::Test {
 protected:
  void start(const Faulty& faults) {
    ends = std::make_unique<Connections>(std::make_unique<MemorySource>(faults.writer, faults.reader), Seal{},
                                         faults.required);
    out = ends->writing(lane_of(1, 4096));
    in = ends->reading(lane_of(1, 4096));
  }
  void stream(std::uint64_t messages) {
    ends->until([&] {
      if (out.next < messages && slot_free(out)) post(out, message_of(out.next, 3000));
      while (simple_arrived(in)) EXPECT_TRUE(next_is(in, message_of(in.next, 3000)));
      return in.next == messages || ends->ends[0]->lost() || ends->ends[1]->lost();
    });
  }
  void expect_lost(int end, const char* why) {
    stream(50);
    ends->until([&] { return ends->ends[end]->lost(); });
    EXPECT_NE(ends->ends[end]->reason().find(why), std::string::npos) << ends->ends[end]->reason();
  }
  std::unique_ptr<Connections> ends;
  LaneState out, in;
};

TEST_F(FaultyCarrier, MayReportFullQueue) {
  start({Fault::no_room, Fault::no_room});
  stream(200);
  EXPECT_EQ(in.next, 200U) << ends->why();
}

TEST_F(FaultyCarrier, FallsBackToTcp_WhenOptional) {
  for (const Faulty& faults :
       {Faulty{Fault::refuse_connect, Fault::none, false}, Faulty{Fault::none, Fault::refuse_connect, false}}) {
    start(faults);
    stream(50);
    EXPECT_EQ(in.next, 50U) << ends->why();
  }
}

TEST_F(FaultyCarrier, FailsConnection_WhenRequired) {
  start({Fault::none, Fault::refuse_connect});
  ends->until([&] { return ends->ends[1]->lost(); });
  EXPECT_NE(ends->ends[1]->reason().find("it does not want to (there)"), std::string::npos) << ends->ends[1]->reason();
  ends->until([&] { return ends->ends[0]->lost(); });
}

TEST_F(FaultyCarrier, CannotDeliverMessageOutOfOrder) {
  start({Fault::wrong_number, Fault::none});
  expect_lost(1, "in the wrong order");
}

TEST_F(FaultyCarrier, CannotDeliverMessageLongerThanSlot) {
  start({Fault::too_long, Fault::none});
  expect_lost(1, "longer than its slot");
}

TEST_F(FaultyCarrier, CannotDeliverMessageOfUnknownLane) {
  start({Fault::no_such_lane, Fault::none});
  expect_lost(1, "unknown lane");
}

TEST_F(FaultyCarrier, CannotReturnExcessCredits) {
  start({Fault::none, Fault::undue_credits});
  expect_lost(0, "were not sent");
}

TEST_F(FaultyCarrier, CannotWithdrawCredits) {
  start({Fault::none, Fault::fewer_credits});
  expect_lost(0, "were not sent");
}

TEST_F(FaultyCarrier, ReportsReasonOfFailure) {
  start({Fault::none, Fault::break_down});
  expect_lost(1, "memory is out of order (there)");
}

// The error suggests another transport only while the choice of transport may be the mistake.
TEST_F(FaultyCarrier, SuggestsAlternative_UntilItHasWorked) {
  const auto reason = [this](Fault of_reader) {
    ends = std::make_unique<Connections>(std::make_unique<MemorySource>(Fault::none, of_reader), Seal{}, true,
                                         "take the train");
    out = ends->writing(lane_of(1, 4096));
    in = ends->reading(lane_of(1, 4096));
    stream(50);
    ends->until([&] { return ends->ends[1]->lost(); });
    return ends->ends[1]->reason();
  };
  EXPECT_EQ(reason(Fault::refuse_connect), "it does not want to; take the train (there)");
  EXPECT_EQ(reason(Fault::break_down), "memory is out of order; take the train (there)");
  EXPECT_EQ(reason(Fault::break_down_later), "memory is out of order (there)");
}

// The last note of the other end is delivered, although the carrier failed before the note was read.
TEST_F(FaultyCarrier, DeliversLastNote_AfterFailure) {
  start({Fault::none, Fault::break_down});
  for (int iteration = 0; iteration < 20; ++iteration) {  // The carrier is connected, and the lane has landed.
    ends->advance(0);
    ends->advance(1);
  }
  ends->ends[0]->send(0, message_of(1, 20));
  post(out, message_of(0, 10));
  ends->advance(0);
  ends->until([&] { return ends->ends[1]->lost(); });
  EXPECT_EQ(ends->ends[1]->take(0), message_of(1, 20));
}

// The other end's last message is still on the way when its TCP connection has ended.
TEST_F(FaultyCarrier, DeliversLastMessage_AfterEndOfTcp) {
  start({Fault::none, Fault::late});
  for (int iteration = 0; iteration < 20; ++iteration) {  // The carrier is connected, and the lane has landed.
    ends->advance(0);
    ends->advance(1);
  }
  post(out, message_of(0, 10));
  ends->advance(0);
  TcpConnection* const leaver = ends->ends[0].get();
  TcpConnection::finish({&leaver, 1});
  ends->until([&] { return ends->ends[1]->lost(); });
  ASSERT_TRUE(simple_arrived(in));
  EXPECT_TRUE(next_is(in, message_of(0, 10)));
}

// The error of a carrier that can no longer send is reported after the messages that the carrier has received.
TEST_F(FaultyCarrier, DeliversLastMessage_AfterItCannotSend) {
  start({Fault::none, Fault::cannot_send});
  for (int iteration = 0; iteration < 20; ++iteration) {  // The carrier is connected, and the lane has landed.
    ends->advance(0);
    ends->advance(1);
  }
  post(out, message_of(0, 10));
  ends->advance(0);
  ends->until([&] { return ends->ends[1]->lost(); });
  EXPECT_EQ(ends->ends[1]->reason(), "memory cannot send (there)");
  ASSERT_TRUE(simple_arrived(in));
  EXPECT_TRUE(next_is(in, message_of(0, 10)));
}

// A connection waits for last messages between calls, and polls the socket no longer. It is lost in the end.
TEST_F(FaultyCarrier, DoesNotBlock_WhileLastMessagesAreMissing) {
  start({Fault::none, Fault::no_announcement});
  for (int iteration = 0; iteration < 20; ++iteration) {
    ends->advance(0);
    ends->advance(1);
  }
  ends->ends[0].reset();
  TcpConnection& end = *ends->ends[1];
  std::array<pollfd, TcpConnection::kPolled> polled;
  const Deadline deadline = Deadline::after_ms(kTimeoutMs);
  do {
    end.advance();
    EXPECT_TRUE(end.prepare_wait(polled));
  } while (polled[0].fd >= 0 && !deadline.passed());
  EXPECT_FALSE(end.lost());
  ends->until([&] { return end.lost(); });
  EXPECT_EQ(end.reason(), "the other end closed it (there)");
}

// A late rank first reads when the other rank has already given up, reported that, and left.
TEST_F(FaultyCarrier, DeliversNotes_WhenConnectFails) {
  for (const bool leaves : {false, true}) {
    start({Fault::none, Fault::refuse_connect});
    ends->ends[0]->send(0, message_of(1, 20));
    if (leaves) ends->ends[0].reset();
    const Deadline deadline = Deadline::after_ms(kTimeoutMs);
    while (!ends->ends[1]->lost() && !deadline.passed()) ends->ends[1]->advance();
    EXPECT_TRUE(ends->ends[1]->lost()) << leaves;
    EXPECT_EQ(ends->ends[1]->take(0), message_of(1, 20)) << leaves;
  }
}

}  // namespace
}  // namespace tutti::test
