// Guarantees of a connection between hosts beside its lanes, in every transport: communicators that share it and end,
// and ranks that die, stop, or leave during transfers.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <random>
#include <thread>

#include "tests/transports/ends.h"
#include "tests/transports/loopback.h"

namespace tutti::test {
namespace {

constexpr std::uint32_t kSlotBytes = 64 << 10;

class ConnectionsWith : public testing::TestWithParam<Tested> {
 protected:
  void SetUp() override {
    auto probe = GetParam().open();
    if (!probe.ok()) GTEST_SKIP() << std::move(probe).status().message();
  }
  Seal seal() const {
    return {.protection = GetParam().sealed ? Protection::encrypted : Protection::none, .secret = {}};
  }
  std::unique_ptr<Connections> connect() const {
    return std::make_unique<Connections>(std::move(GetParam().open()).value(), seal());
  }
  // Creates one end, for a separate process.
  std::unique_ptr<TcpConnection> connect(Socket socket, bool odd, std::unique_ptr<CarrierSource>& source) const {
    source = std::move(GetParam().open()).value();
    std::unique_ptr<Carrier> carrier;
    if (source) carrier = std::move(source->make()).value();
    return std::make_unique<TcpConnection>(std::move(socket), odd, odd ? "there" : "here",
                                           CarrierOptions{std::move(carrier), source != nullptr, ""}, seal());
  }
  static void fill(LaneState& lane, std::uint32_t bytes = kSlotBytes) {
    while (slot_free(lane)) post(lane, message_of(lane.next, bytes));
  }
};

TEST_P(ConnectionsWith, KeepContextsSeparate) {
  const auto ends = connect();
  LaneState first = ends->writing(lane_of(1), 1), second = ends->writing(lane_of(1), 2);
  LaneState in_first = ends->reading(lane_of(1), 1), in_second = ends->reading(lane_of(1), 2);
  post(first, message_of(1, 100));
  post(second, message_of(2, 100));
  ends->ends[0]->send(2, message_of(3, 50));
  ends->until([&] { return simple_arrived(in_first) && simple_arrived(in_second) && ends->ends[1]->has_notes(); });
  EXPECT_TRUE(next_is(in_first, message_of(1, 100)));
  EXPECT_TRUE(next_is(in_second, message_of(2, 100)));
  EXPECT_FALSE(ends->ends[1]->take(1));
  EXPECT_EQ(ends->ends[1]->take(2), message_of(3, 50));
  EXPECT_NE(ends->ends[0]->new_context(), ends->ends[1]->new_context());
}

TEST_P(ConnectionsWith, ReturnAllCredits_OnRequest) {
  const auto ends = connect();
  LaneState out = ends->writing(lane_of(1)), in = ends->reading(lane_of(1));
  post(out, message_of(0, 10));
  ends->until([&] { return simple_arrived(in); });
  take(in);
  ends->until([&] { return ends->ends[0]->drained(0); });
  for (int i = 0; i < 100; ++i) {
    ends->advance(0);
    ends->advance(1);
  }
  EXPECT_EQ(load_acquire(&out.view.credits->taken), 0U);  // A single credit is not worth a message.
  ends->ends[1]->send_credits();
  ends->until([&] { return ends->ends[1]->drained(0); });
  ends->until([&] { return load_acquire(&out.view.credits->taken) == 1; });
}

// After drained() the thread may sleep: all remaining work is at the other end.
TEST_P(ConnectionsWith, AreDrained_WhenOnlyTheOtherEndMustAct) {
  for (const std::uint32_t bytes : {100U, kSlotBytes, 1U << 20}) {
    const auto ends = connect();
    LaneState out = ends->writing(lane_of(1, 1 << 20)), in = ends->reading(lane_of(1, 1 << 20));
    while (slot_free(out)) post(out, message_of(out.next, bytes));
    ends->until([&] { return ends->ends[0]->drained(0); });
    const Deadline deadline = Deadline::after_ms(kTimeoutMs);
    while (load_acquire(&in.view.words->posted) < out.next && !deadline.passed()) ends->advance(1);
    for (std::uint64_t number = 0; number < out.next; ++number) {
      ASSERT_TRUE(simple_arrived(in)) << number;
      EXPECT_TRUE(next_is(in, message_of(number, bytes)));
    }
  }
}

TEST_P(ConnectionsWith, RejectInvalidLanes) {
  const auto ends = connect();
  for (const std::uint32_t bytes : {0U, 100U, 1U << 30})
    EXPECT_FALSE(ends->ends[0]->open(0, lane_of(1, bytes), LaneEnd::writer).ok()) << bytes;
  LaneSpec lines = lane_of(1);
  lines.protocol = Protocol::ll;
  EXPECT_FALSE(ends->ends[0]->open(0, lines, LaneEnd::writer).ok());
  (void)ends->writing(lane_of(2));
  EXPECT_FALSE(ends->ends[0]->open(0, lane_of(2), LaneEnd::reader).ok());
}

// ---- Communicators that end ----

// When one end leaves a communicator, at any time, other communicators on the connection continue.
TEST_P(ConnectionsWith, SurviveEndOfContext_InAnyPhase) {
  const auto seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  for (int iteration = 0; iteration < 30; ++iteration) {
    const auto ends = connect();
    LaneState out = ends->writing(lane_of(1), 1), other = ends->writing(lane_of(1), 2);
    LaneState in_other = ends->reading(lane_of(1), 2);
    (void)ends->reading(lane_of(1), 1);
    fill(out);
    // The steps end before the carrier is connected, before a lane has landed, with messages in flight, or after them.
    for (std::uint32_t steps = random() % 12; steps > 0; --steps) ends->advance(static_cast<int>(random() % 2));
    const int first = static_cast<int>(random() % 2);
    ends->ends[first]->close(1);
    for (std::uint32_t steps = random() % 6; steps > 0; --steps) ends->advance(static_cast<int>(random() % 2));
    ends->ends[1 - first]->close(1);
    for (std::uint64_t i = 0; i < 20; ++i) {
      ends->until([&] { return slot_free(other); });
      post(other, message_of(i, kSlotBytes));
      ends->until([&] { return simple_arrived(in_other); });
      ASSERT_TRUE(next_is(in_other, message_of(i, kSlotBytes))) << "iteration " << iteration;
    }
  }
}

TEST_P(ConnectionsWith, SupportManyContextsInSequence) {
  const auto ends = connect();
  for (std::uint32_t context = 1; context <= 100; ++context) {
    LaneState out = ends->writing(lane_of(1, 4096), context), in = ends->reading(lane_of(1, 4096), context);
    for (std::uint64_t number = 0; number < 3; ++number) {
      post(out, message_of(number, 4096));
      ends->until([&] { return simple_arrived(in); });
      ASSERT_TRUE(next_is(in, message_of(number, 4096))) << "context " << context;
    }
    ends->ends[context % 2]->close(context);
    ends->ends[1 - context % 2]->close(context);
  }
}

// An end transfers a context and uses it. The other end leaves before the note arrived, or before it has read the note.
// The other end still releases its state of the context.
TEST_P(ConnectionsWith, ReleaseContext_ThatPeerNeverTook) {
  for (const bool came : {true, false}) {
    const auto ends = connect();
    const std::uint32_t context = ends->ends[0]->new_context();
    const LaneSpec spec = lane_of(1);
    const std::size_t bytes = HalfLane::memory_bytes(spec) + (64 << 10);
    std::weak_ptr<std::byte> memory;
    {
      LaneMemory block = std::move(ends->ends[1]->allocate(bytes)).value();
      memory = block;
      ends->ends[1]->attach_memory(context, {.memory = std::move(block), .bytes = bytes, .slots = {}});
    }
    if (!came) ends->ends[1]->close(0);
    ends->ends[0]->send(0, message_of(1, 20), context);
    (void)ends->open(0, spec, LaneEnd::writer, context);
    if (came) ends->until([&] { return ends->ends[1]->has_notes(); });
    if (came) ends->ends[1]->close(0);
    ends->ends[0]->close(context);
    ends->until([&] { return memory.expired(); });
    EXPECT_FALSE(ends->ends[0]->lost() || ends->ends[1]->lost()) << ends->why();
  }
}

// ---- Ranks that leave ----

// The other end is notified, or detects the loss. Its later operations have no effect.
TEST_P(ConnectionsWith, ReportReasonOfLoss_InAnyPhase) {
  const auto seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  for (int iteration = 0; iteration < 20; ++iteration) {
    const auto ends = connect();
    const int gone = static_cast<int>(random() % 2);
    LaneState out = ends->writing(lane_of(1));
    (void)ends->reading(lane_of(1));
    if (random() % 4 > 0) fill(out, 4096);
    for (std::uint32_t steps = random() % 12; steps > 0; --steps) ends->advance(static_cast<int>(random() % 2));
    ends->ends[gone].reset();
    TcpConnection& left = *ends->ends[1 - gone];
    ends->until([&] { return left.lost(); });
    EXPECT_NE(left.reason().find(gone == 0 ? "(there)" : "(here)"), std::string::npos) << left.reason();
    EXPECT_TRUE(left.drained(0));
    left.send(0, {});
    left.send_credits();
    left.wait(1);
    left.close(0);
  }
}

// Data sent before an end left is delivered.
TEST_P(ConnectionsWith, DeliverDataSentBeforeTheEnd) {
  for (const std::uint32_t bytes : {100U, kSlotBytes}) {
    const auto ends = connect();
    LaneState out = ends->writing(lane_of(1)), in = ends->reading(lane_of(1));
    while (slot_free(out)) post(out, message_of(out.next, bytes));
    ends->until([&] { return ends->ends[0]->drained(0); });
    ends->ends[0]->send(0, message_of(7, 20));
    std::thread leaving([&] { ends->ends[0].reset(); });
    TcpConnection& reader = *ends->ends[1];
    const Deadline deadline = Deadline::after_ms(kTimeoutMs);
    while (!reader.lost() && !deadline.passed()) reader.advance();
    leaving.join();
    for (std::uint64_t number = 0; number < HalfLane::kSlots; ++number) {
      ASSERT_TRUE(simple_arrived(in)) << number << " of " << bytes << " bytes; " << reader.reason();
      EXPECT_TRUE(next_is(in, message_of(number, bytes)));
    }
    EXPECT_EQ(reader.take(0), message_of(7, 20));
  }
}

// ---- Ranks that die or stop ----

class ConnectionsOfProcessesWith : public ConnectionsWith {
 protected:
  // Starts the other end in a child process, which receives messages forever.
  pid_t start_reader(const Socket& socket) const {
    const int kept = ::dup(socket.get());  // A forked child loses sockets.
    const pid_t child = ::fork();
    if (child != 0) {
      ::close(kept);
      return child;
    }
    if (!GetParam().open().ok()) ::_exit(2);
    std::unique_ptr<CarrierSource> source;
    const auto connection = connect(adopt_socket(kept), true, source);
    LaneState in = {.view = std::move(connection->open(0, lane_of(1), LaneEnd::reader)).value()};
    for (;;) {
      connection->advance();
      if (!simple_arrived(in)) {
        connection->wait(1);
        continue;
      }
      if (!next_is(in, message_of(in.next % 16, kSlotBytes))) ::_exit(1);
    }
  }
  void SetUp() override {
    if (GetParam().open == nullptr || std::string(GetParam().name) == "memory")
      GTEST_SKIP() << "memory is that of one process";
    // Libraries are opened in each process, not before the fork.
  }
};

TEST_P(ConnectionsOfProcessesWith, ReportKilledPeer) {
  auto [mine, theirs] = loopback_pair();
  const pid_t reader = start_reader(theirs);
  std::unique_ptr<CarrierSource> source;
  auto probe = GetParam().open();
  if (!probe.ok()) {
    ::kill(reader, SIGKILL);
    ::waitpid(reader, nullptr, 0);
    GTEST_SKIP() << std::move(probe).status().message();
  }
  theirs.reset();
  const auto connection = connect(std::move(mine), false, source);
  LaneState out = {.view = std::move(connection->open(0, lane_of(1), LaneEnd::writer)).value()};
  const Deadline deadline = Deadline::after_ms(kTimeoutMs);
  const auto drive = [&](std::uint64_t until) {
    while (out.next < until && !connection->lost() && !deadline.passed()) {
      if (slot_free(out)) post(out, message_of(out.next % 16, kSlotBytes));
      connection->advance();
    }
  };
  drive(100);
  EXPECT_EQ(out.next, 100U) << (connection->lost() ? connection->reason() : "it hangs");
  ::kill(reader, SIGKILL);
  ::waitpid(reader, nullptr, 0);
  drive(~std::uint64_t{0});
  ASSERT_TRUE(connection->lost());
  EXPECT_NE(connection->reason().find("(here)"), std::string::npos) << connection->reason();
}

TEST_P(ConnectionsOfProcessesWith, TolerateStoppedPeer) {
  auto [mine, theirs] = loopback_pair();
  const pid_t reader = start_reader(theirs);
  theirs.reset();
  auto probe = GetParam().open();
  if (!probe.ok()) {
    ::kill(reader, SIGKILL);
    ::waitpid(reader, nullptr, 0);
    GTEST_SKIP() << std::move(probe).status().message();
  }
  std::unique_ptr<CarrierSource> source;
  const auto connection = connect(std::move(mine), false, source);
  LaneState out = {.view = std::move(connection->open(0, lane_of(1), LaneEnd::writer)).value()};
  const Deadline deadline = Deadline::after_ms(kTimeoutMs);
  const auto drive = [&](std::uint64_t messages) {
    for (const std::uint64_t until = out.next + messages; out.next < until && !connection->lost();) {
      ASSERT_FALSE(deadline.passed()) << "it hangs";
      if (slot_free(out)) post(out, message_of(out.next % 16, kSlotBytes));
      connection->advance();
    }
  };
  drive(50);
  ::kill(reader, SIGSTOP);
  int status = 0;
  ::waitpid(reader, &status, WUNTRACED);
  while (slot_free(out)) post(out, message_of(out.next % 16, kSlotBytes));
  for (std::int64_t later = 0; later < 30; ++later) {  // Simulates that seconds pass.
    for (int i = 0; i < 50; ++i) connection->advance();
    connection->check_liveness(now_ns() + later * 1'000'000'000);
  }
  EXPECT_FALSE(connection->lost()) << connection->reason();
  ::kill(reader, SIGCONT);
  drive(50);
  EXPECT_FALSE(connection->lost()) << connection->reason();
  ::kill(reader, SIGKILL);
  ::waitpid(reader, nullptr, 0);
}

std::string name_of(const testing::TestParamInfo<Tested>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(All, ConnectionsWith, testing::ValuesIn(connections_tested()), name_of);
INSTANTIATE_TEST_SUITE_P(All, ConnectionsOfProcessesWith, testing::ValuesIn(connections_tested()), name_of);

}  // namespace
}  // namespace tutti::test
