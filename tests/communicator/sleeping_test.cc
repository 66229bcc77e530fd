// Waits that sleep: their CPU time, and the events that wake them.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/base/own_cpus.h"
#include "src/communicator/call/pace.h"
#include "src/communicator/call/stream.h"
#include "src/communicator/communicator.h"
#include "src/communicator/control/board.h"
#include "src/communicator/membership/control_plane.h"
#include "src/executor/lane_operations.h"
#include "tests/base/case_sampling.h"
#include "tests/communicator/joined_ranks.h"
#include "tests/communicator/random_pauses.h"

namespace tutti::test {
namespace {

constexpr std::int64_t kPauseNs = 2'000'000'000;

// Waits until the rank sleeps, or for ten seconds.
bool falls_asleep(const Communicator& communicator) {
  const BoardEntry& entry = communicator.board().entry(communicator.rank());
  for (const Deadline deadline = Deadline::after_ms(10'000); !deadline.passed(); std::this_thread::yield()) {
    if (load_acquire(&entry.asleep) != 0) return true;
  }
  return false;
}

std::int64_t cpu_ns() {
  rusage usage = {};
  ::getrusage(RUSAGE_THREAD, &usage);
  const auto ns = [](const timeval& time) { return time.tv_sec * 1'000'000'000 + time.tv_usec * 1'000; };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

// Returns the share of one CPU that rank 0 uses in `body` while rank 1 is two seconds late.
double cpu_share(Communicators& ranks, const std::function<Status(Communicator&)>& body) {
  double share = 1;
  const auto statuses = on_all(ranks, [&](Communicator& communicator) {
    if (communicator.rank() != 0) std::this_thread::sleep_for(std::chrono::nanoseconds(kPauseNs));
    const std::int64_t began_ns = now_ns(), cpu_began_ns = cpu_ns();
    Status status = body(communicator);
    if (communicator.rank() == 0)
      share = static_cast<double>(cpu_ns() - cpu_began_ns) / static_cast<double>(now_ns() - began_ns);
    return status;
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
  return share;
}

Status reduce_small(Communicator& communicator) {
  std::vector<float> buffer(2, 1);
  return communicator.run(all_reduce(buffer));
}

// A wait of two seconds takes about 0.005 s of CPU time.
constexpr double kMaxShare = 0.05;

TEST(SleepingWait, UsesLittleCpuTime_WithinHost) {
  Communicators ranks = make_ranks(2);
  for (const Status& status : on_all(ranks, reduce_small)) ASSERT_TRUE(status.ok());
  EXPECT_LT(cpu_share(ranks, reduce_small), kMaxShare);
  EXPECT_LT(cpu_share(ranks, [](Communicator& communicator) { return communicator.finalize(); }), kMaxShare);
}

TEST(SleepingWait, UsesLittleCpuTime_BetweenHosts) {
  auto made = Communicator::create_all(Hosts::one_rank_per_host(2), {});
  ASSERT_TRUE(made.ok());
  for (const Status& status : on_all(made.value(), reduce_small)) ASSERT_TRUE(status.ok());
  EXPECT_LT(cpu_share(made.value(), reduce_small), kMaxShare);
}

TEST(SleepingWait, UsesLittleCpuTime_InGroup) {
  Communicators ranks = make_ranks(2);
  Communicators others = make_ranks(2);
  EXPECT_LT(cpu_share(ranks,
                      [&](Communicator& communicator) {
                        std::vector<float> first(100), second(100);
                        return run_group({{&communicator, all_reduce(first), {}},
                                          {others[communicator.rank()].get(), all_reduce(second), {}}});
                      }),
            kMaxShare);
}

TEST(SleepingWait, SpinsOrSleeps_AsOptionsRequest) {
  for (const WaitMode mode : {WaitMode::spin, WaitMode::sleep}) {
    CommunicatorOptions options;
    options.wait = mode;
    Communicators ranks = make_ranks(2, options);
    bool slept = false;
    const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
      if (communicator.rank() == 1) {
        const BoardEntry& entry = communicator.board().entry(0);
        const int limit_ms = mode == WaitMode::sleep ? 20'000 : 300;
        for (const Deadline deadline = Deadline::after_ms(limit_ms); !slept && !deadline.passed();)
          slept = load_acquire(&entry.asleep) != 0;
      }
      return reduce_small(communicator);
    });
    for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(slept, mode == WaitMode::sleep);
  }
}

TEST(SleepingWait, EndsAtTimeout) {
  Communicators ranks = make_ranks(2);
  CommunicatorOptions options = ranks[0]->options();
  options.timeout_ms = 300;
  std::vector<float> buffer(2);
  EXPECT_EQ(ranks[0]->run(all_reduce(buffer), &options).code(), Code::timeout);
}

TEST(SleepingWait, EndsAtAbort) {
  Communicators ranks = make_ranks(2);
  std::thread aborting([&] {
    EXPECT_TRUE(falls_asleep(*ranks[0]));
    ranks[1]->abort();
  });
  EXPECT_EQ(reduce_small(*ranks[0]).code(), Code::aborted);
  aborting.join();
}

TEST(SleepingWait, EndsAtDeathOfPeer) {
  std::vector<Mesh> meshes = Mesh::within_process(Hosts::one_host(2)).value();
  Communicator rank(std::make_shared<ControlPlane>(0, std::move(meshes[0]), Board::create(2).value(),
                                                   CommunicatorOptions(), Spread::one_process));
  std::thread dying([&] {
    EXPECT_TRUE(falls_asleep(rank));
    meshes.clear();  // Closes the socket of rank 1.
  });
  EXPECT_EQ(reduce_small(rank).code(), Code::remote);
  dying.join();
}

// ---- Posts that wake a rank ----

struct PostTest : public ::testing::Test {
  // Returns whether the post clears the word of the rank at the other end.
  bool wakes(const std::function<void(LaneState&)>& post) {
    asleep = 1;
    post(lane);
    return asleep == 0;
  }

  alignas(64) std::byte slots[8 * 640] = {};
  LaneWords words = {};
  LaneCredits credits = {};
  std::uint32_t asleep = 0;
  LaneState lane = {.view = {.slots = slots, .words = &words, .credits = &credits, .slot_bytes = 640},
                    .peer_asleep = &asleep};
};

TEST_F(PostTest, WakesReader) {
  std::byte data[100] = {};
  EXPECT_TRUE(wakes([](LaneState& end) { simple_post(end, {}, 8); }));
  EXPECT_TRUE(wakes([&](LaneState& end) { send_ll(end, {}, data, 8); }));
  EXPECT_TRUE(wakes([&](LaneState& end) { send_ll(end, {}, data, sizeof data); }));
  lane.view.slots = nullptr;
  EXPECT_TRUE(wakes([](LaneState& end) { simple_post(end, {}, 0); }));  // A flag.
}

TEST_F(PostTest, WakesWriterThatAwaitsSlot) {
  EXPECT_TRUE(wakes([](LaneState& end) { take(end); }));
}

// ---- When to sleep ----

TEST(SleepingWait, BeginsAtOnce_InStream) {
  auto stream = Stream::create();
  ASSERT_TRUE(stream.ok());
  stream.value()->enqueue([]() -> Status { return thread_pace.in_stream ? Status() : internal_error("spins"); });
  EXPECT_TRUE(stream.value()->synchronize().ok());
  EXPECT_FALSE(thread_pace.in_stream);
}

void bind_to_first_cpu() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(own_cpus().front(), &set);
  ASSERT_EQ(::sched_setaffinity(0, sizeof set, &set), 0);
}

// Threads that occupy the first CPU.
class BusyThreads {
 public:
  explicit BusyThreads(std::size_t count) : threads_(count) {
    for (std::thread& thread : threads_) {
      thread = std::thread([this] {
        bind_to_first_cpu();
        while (!over_) pause();
      });
    }
  }
  ~BusyThreads() {
    over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> over_ = false;
  std::vector<std::thread> threads_;
};

// Each look for the end of contention costs a time slice on a loaded machine.
TEST(Pace, LooksLessOften_WhileContentionLasts) {
  constexpr std::int64_t kMs = 1'000'000;
  Pace pace;
  std::int64_t now = 1'000 * kMs;
  std::int64_t last = 0;
  for (int looks = 0; looks < 12; ++looks) {
    pace.note_contention(now);
    const std::int64_t began = now;
    for (; pace.cpu_is_contended(); now += kMs) pace.end_contention(now);
    EXPECT_GE(now - began, std::min(2 * last, 1'000 * kMs) - kMs);
    last = now - began;
    now += 20 * kMs;
  }
  EXPECT_LE(last, 1'001 * kMs);
  now += 200 * kMs;
  pace.note_contention(now);
  pace.end_contention(now + 6 * kMs);
  EXPECT_FALSE(pace.cpu_is_contended());
}

// A yield returns only after a busy thread has used its time slice.
TEST(Pace, DetectsContention_WhenRanksYieldToBusyThread) {
  const BusyThreads busy(1);
  Communicators ranks = make_ranks(2);
  const auto statuses = on_all(ranks, [](Communicator& communicator) {
    bind_to_first_cpu();
    const Deadline deadline = Deadline::after_ms(10'000);
    std::vector<float> over(1);
    while (over[0] == 0 && !deadline.passed()) {
      over[0] = thread_pace.cpu_is_contended() ? 1 : 0;
      TUTTI_CHECK_OK(communicator.run(all_reduce(over)));
    }
    return over[0] != 0 ? Status() : internal_error("no rank detects contention");
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

// The scheduler preempts each of several threads on one CPU.
TEST(Pace, SeesThreadsOfProcess_ThatShareCpu) {
  const BusyThreads busy(4);
  std::thread([&] {
    bind_to_first_cpu();
    const Deadline deadline = Deadline::after_ms(10'000);
    while (!thread_pace.others_compute(now_ns()) && !deadline.passed()) thread_pace.look_for_others(now_ns());
    EXPECT_TRUE(thread_pace.others_compute(now_ns()));
    EXPECT_FALSE(thread_pace.others_compute(now_ns() + 1'000'000'000));
  }).join();
}

// ---- Random pauses ----

TEST(SleepingWait, Ends_WithRandomPauses) {
  OneOf cases(5);
  for (const WaitMode mode : {WaitMode::automatic, WaitMode::sleep}) {
    for (const Rank ranks : {2U, 3U, 4U}) {
      if (!cases.takes()) continue;
      CommunicatorOptions options;
      options.wait = mode;
      make_calls_with_pauses(make_ranks(ranks, options), 100);
      make_calls_with_pauses(meet(ranks, options), 100);
    }
  }
}

TEST(SleepingWait, Ends_WithRandomPausesBetweenHosts) {
  CommunicatorOptions options;
  options.wait = WaitMode::sleep;
  auto made = Communicator::create_all(Hosts(std::vector<Rank>{0, 0, 1, 1}), options);
  ASSERT_TRUE(made.ok());
  make_calls_with_pauses(std::move(made).value(), 100);
}

}  // namespace
}  // namespace tutti::test
