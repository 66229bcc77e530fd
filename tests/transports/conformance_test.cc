// Guarantees of lanes in every transport: messages arrive in order, limited by the number of slots. The suite runs over
// all transports; a new one is a line in ends.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <iostream>
#include <random>
#include <thread>

#include "tests/transports/ends.h"

namespace tutti::test {
namespace {

constexpr std::uint32_t kMax = 16 << 20;

std::vector<std::string> names() {
  std::vector<std::string> all = {"shm"};
  for (const Tested& tested : connections_tested()) all.emplace_back(tested.name);
  return all;
}

class Conformance : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "shm") {
      ends = shared_memory();
      return;
    }
    for (const Tested& tested : connections_tested()) {
      if (GetParam() != tested.name) continue;
      auto source = tested.open();
      if (!source.ok()) GTEST_SKIP() << std::move(source).status().message();
      const Seal seal = {.protection = tested.sealed ? Protection::encrypted : Protection::none, .secret = {}};
      ends = std::make_unique<Connections>(std::move(source).value(), seal);
    }
  }
  std::mt19937_64 seeded() {
    const auto seed = std::random_device()();
    RecordProperty("seed", static_cast<int>(seed));
    std::cout << "seed " << seed << "\n";
    return std::mt19937_64(seed);
  }
  // Runs both ends in one thread. The check generates each message again.
  void stream(const LaneSpec& spec, std::uint64_t messages, const std::function<std::size_t(std::uint64_t)>& size) {
    LaneState out = ends->writing(spec), in = ends->reading(spec);
    ends->until([&] {
      if (out.next < messages && slot_free(out)) post(out, message_of(out.next, size(out.next)));
      while (in.next < messages && simple_arrived(in)) {
        const std::uint64_t number = in.next;
        EXPECT_TRUE(next_is(in, message_of(number, size(number)))) << "message " << number;
      }
      return in.next == messages;
    });
  }
  // Like stream(), with a thread per end. Each thread sleeps when it can.
  void stream_between_threads(const LaneSpec& spec, std::uint64_t messages, std::size_t bytes);

  std::unique_ptr<Ends> ends;
};

void Conformance::stream_between_threads(const LaneSpec& spec, std::uint64_t messages, std::size_t bytes) {
  LaneState out = ends->writing(spec), in = ends->reading(spec);
  const Deadline deadline = Deadline::after_ms(kTimeoutMs);
  std::vector<std::vector<std::byte>> sent;
  for (std::uint64_t kind = 0; kind < 3; ++kind) sent.push_back(message_of(kind, bytes));
  std::atomic<bool> over = false;
  std::thread writer([&] {
    while (out.next < messages && !deadline.passed()) {
      if (slot_free(out)) {
        post(out, sent[out.next % sent.size()]);
        ends->advance(0);
        continue;
      }
      ends->advance(0);
      if (!slot_free(out)) ends->wait(0, 1);
    }
    while (!ends->drained(0) && !deadline.passed()) ends->wait(0, 1);
    over = true;
  });
  while (in.next < messages && !deadline.passed()) {
    if (simple_arrived(in)) {
      const std::uint64_t number = in.next;
      EXPECT_TRUE(next_is(in, sent[number % sent.size()])) << "message " << number;
      continue;
    }
    ends->advance(1);
    if (!simple_arrived(in)) ends->wait(1, 1);
  }
  while (!over) ends->advance(1);
  writer.join();
  EXPECT_EQ(in.next, messages) << ends->why();
}

TEST_P(Conformance, CarriesMessagesOfAllSizesInOrder) {
  std::mt19937_64 random = seeded();
  constexpr std::uint32_t kSlotBytes = 64 << 10;
  std::vector<std::size_t> sizes = {
      0, 1, 7, 8, 31, 32, 33, 192, 193, 224, 225, 4095, 8159, 8160, 8161, 8192, 20000, kSlotBytes - 1, kSlotBytes};
  for (int i = 0; i < 80; ++i) sizes.push_back(random() % (kSlotBytes + 1));
  std::shuffle(sizes.begin(), sizes.end(), random);
  stream(lane_of(1, kSlotBytes), 4 * sizes.size(), [&](std::uint64_t number) { return sizes[number % sizes.size()]; });
}

TEST_P(Conformance, CarriesLargestSlots) {
  const std::size_t sizes[] = {kMax, 0, kMax - 1, 3, 5 << 20};
  stream(lane_of(1, kMax), 10, [&](std::uint64_t number) { return sizes[number % std::size(sizes)]; });
}

TEST_P(Conformance, WrapsAround_WithFewestSlots) {
  LaneSpec one = lane_of(1, 4096);
  one.slot_shift = 0;  // Lanes between hosts have more slots.
  stream(one, 200, [](std::uint64_t number) { return number * 37 % 4097; });
}

TEST_P(Conformance, LimitsMessagesToSlots) {
  LaneState out = ends->writing(lane_of(1)), in = ends->reading(lane_of(1));
  std::uint64_t fit = 0;
  for (; slot_free(out) && fit < 100; ++fit) post(out, message_of(fit, 64 << 10));
  EXPECT_EQ(fit, HalfLane::kSlots);
  ends->until([&] { return load_acquire(&in.view.words->posted) == fit; });
  for (int iteration = 0; iteration < 20; ++iteration) {
    ends->advance(0);
    ends->advance(1);
  }
  EXPECT_FALSE(slot_free(out));
  // Credits return before the slots that plans assume are exhausted.
  for (std::uint64_t taken = 0; taken < fit / 2; ++taken) {
    ASSERT_TRUE(simple_arrived(in));
    EXPECT_TRUE(next_is(in, message_of(taken, 64 << 10)));
  }
  ends->until([&] { return slot_free(out); });
}

TEST_P(Conformance, CarriesManyLanesInBothDirections) {
  std::mt19937_64 random = seeded();
  constexpr std::uint16_t kLanes = 64;
  constexpr std::uint64_t kMessages = 30;
  std::vector<LaneState> out, in, answering, answers;
  for (std::uint16_t lane = 0; lane < kLanes; ++lane) {
    const LaneSpec spec = lane_of(lane, 4096);
    if (random() % 2 == 0) (void)ends->reading(spec);  // Either end may be created first.
    if (random() % 2 == 0) (void)ends->reading(back(spec));
    out.push_back(ends->writing(spec));
    in.push_back(ends->reading(spec));
    answering.push_back(ends->writing(back(spec)));
    answers.push_back(ends->reading(back(spec)));
  }
  std::uint64_t answered = 0;
  ends->until([&] {
    for (int i = 0; i < kLanes; ++i) {
      const auto lane = random() % kLanes;
      if (out[lane].next < kMessages && slot_free(out[lane])) post(out[lane], message_of(lane, 100 + lane));
      if (simple_arrived(in[lane]) && slot_free(answering[lane])) {
        EXPECT_TRUE(next_is(in[lane], message_of(lane, 100 + lane)));
        post(answering[lane], message_of(lane + 1000, 3000));
      }
      if (simple_arrived(answers[lane])) {
        EXPECT_TRUE(next_is(answers[lane], message_of(lane + 1000, 3000)));
        ++answered;
      }
    }
    return answered == kMessages * kLanes;
  });
}

TEST_P(Conformance, StreamsSmallMessagesBetweenThreads) { stream_between_threads(lane_of(1, 4096), 3000, 100); }

TEST_P(Conformance, StreamsLargeMessagesBetweenThreads) { stream_between_threads(lane_of(1, 1 << 20), 64, 1 << 20); }

TEST_P(Conformance, DISABLED_StreamsGibibyteBetweenThreads) {
  stream_between_threads(lane_of(1, 4 << 20), 256, 4 << 20);
}

// A waiting thread is woken, although another thread may have found the message.
TEST_P(Conformance, WakesWaitingThread) {
  LaneState out = ends->writing(lane_of(1, 4096)), in = ends->reading(lane_of(1, 4096));
  LaneState answering = ends->writing(back(lane_of(1, 4096))), answers = ends->reading(back(lane_of(1, 4096)));
  constexpr std::uint64_t kRounds = 300;
  const Deadline deadline = Deadline::after_ms(kTimeoutMs);
  const auto receive = [&](int end, LaneState& lane) {
    while (!simple_arrived(lane) && !deadline.passed()) {
      ends->advance(end);
      if (!simple_arrived(lane)) ends->wait(end, kTimeoutMs);
    }
    EXPECT_TRUE(next_is(lane, message_of(lane.next, 64)));
  };
  const auto send = [&](int end, LaneState& lane) {
    while (!slot_free(lane) && !deadline.passed()) ends->advance(end);
    post(lane, message_of(lane.next, 64));
    ends->advance(end);
  };
  std::thread peer([&] {
    for (std::uint64_t round = 0; round < kRounds && !deadline.passed(); ++round) {
      receive(1, in);
      send(1, answering);
    }
  });
  for (std::uint64_t round = 0; round < kRounds && !deadline.passed(); ++round) {
    send(0, out);
    receive(0, answers);
  }
  peer.join();
  EXPECT_EQ(answers.next, kRounds) << ends->why();
  EXPECT_FALSE(deadline.passed()) << "no thread was woken" << ends->why();
}

INSTANTIATE_TEST_SUITE_P(Over, Conformance, testing::ValuesIn(names()), [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tutti::test
