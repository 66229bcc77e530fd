// The proxy thread of a device. The test acts as the device: it posts and takes messages, and wakes no thread.
#include "src/executor/proxy/proxy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "src/base/atomic.h"
#include "src/base/own_cpus.h"
#include "src/executor/proxy/near_nic.h"
#include "src/executor/proxy/sleeps.h"
#include "tests/base/many_cpus.h"
#include "tests/base/share_cpu.h"
#include "tests/transports/ends.h"
#include "transports/tcp/interface.h"

namespace tutti::test {
namespace {

constexpr auto kWhile = std::chrono::milliseconds(200);

class ProxyTest : public testing::Test {
 protected:
  // End 0 writes; each end has a proxy.
  void start() {
    for (int end = 0; end < 2; ++end) {
      ProxyDuty duty;
      duty.connections = {both_.ends[end].get()};
      duty.ended = &ended_[end];
      duty.failed = &failed_[end];
      duty.look = [this, end](std::int64_t) {
        ++looks_[end];
        return goes_on_.load();
      };
      proxies_[end] = std::move(Proxy::start(std::move(duty))).value();
    }
  }
  void SetUp() override {
    writing_ = both_.writing(lane_of(0));
    reading_ = both_.reading(lane_of(0));
    start();
  }
  void TearDown() override {
    for (auto& proxy : proxies_) proxy.reset();
  }
  // Posts a message in memory only, like a thread block.
  void post() {
    store_relaxed(&writing_.view.words->lengths[posted_ % kMaxLengths], 8U);
    store_release(&writing_.view.words->posted, ++posted_);
  }
  template <typename Done>
  static bool comes(const Done& done) {
    const Deadline deadline = Deadline::after_ms(kTimeoutMs);
    while (!done() && !deadline.passed()) share_cpu();
    return done();
  }
  bool arrives() {
    return comes([this] { return load_acquire(&reading_.view.words->posted) == posted_; });
  }
  void take() { store_release(&reading_.view.credits->taken, posted_); }
  void expect_call(int end, std::uint32_t number) { proxies_[end]->expect(number); }
  void end_call(int end, std::uint32_t number) { store_release(&ended_[end], number); }
  // Returns the number of rounds per 200 ms.
  std::uint64_t rounds_meanwhile(int end) {
    const std::uint64_t before = proxies_[end]->rounds();
    const auto began = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(kWhile);
    const std::uint64_t rounds = proxies_[end]->rounds() - before;
    return rounds * kWhile / std::max<std::chrono::nanoseconds>(kWhile, std::chrono::steady_clock::now() - began);
  }

  Connections both_;
  LaneState writing_, reading_;
  std::uint64_t posted_ = 0;
  std::uint32_t ended_[2] = {}, failed_[2] = {};
  std::atomic<std::uint32_t> looks_[2] = {};
  std::atomic<bool> goes_on_{true};
  std::unique_ptr<Proxy> proxies_[2];
};

TEST_F(ProxyTest, CarriesMessagesAndCredits_DuringCall) {
  expect_call(0, 1);
  expect_call(1, 1);
  for (int message = 0; message < 100; ++message) {
    post();
    ASSERT_TRUE(arrives()) << message;
    take();
  }
  EXPECT_TRUE(comes([this] { return load_acquire(&writing_.view.credits->taken) >= posted_ - HalfLane::kSlots / 2; }));
}

// The peer's thread sleeps between calls: arriving data wakes it.
TEST_F(ProxyTest, Receives_WithoutCall) {
  expect_call(0, 1);
  for (int message = 0; message < 5; ++message) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    post();
    ASSERT_TRUE(arrives());
  }
}

// The call is announced when the thread may be about to sleep.
TEST_F(ProxyTest, MissesNoCall) {
  for (std::uint32_t call = 1; call <= 300; ++call) {
    expect_call(0, call);
    post();
    end_call(0, call);
    ASSERT_TRUE(arrives()) << call;
    take();
    if (call % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(call));
  }
}

TEST_F(ProxyTest, Sleeps_WithoutCall) {
  expect_call(0, 1);
  post();
  end_call(0, 1);
  ASSERT_TRUE(arrives());
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LE(rounds_meanwhile(0), 4U);
  EXPECT_LE(rounds_meanwhile(1), 4U);
}

TEST_F(ProxyTest, Sleeps_WhenCallDoesNotProgress) {
  expect_call(0, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LE(rounds_meanwhile(0), 4100U);
  EXPECT_TRUE(comes([this] { return looks_[0] >= 2; }));
  post();
  EXPECT_TRUE(arrives());
}

// The last message was more than kReplayNs ago, and arrives when the thread polls. Without graphs, the thread sleeps.
TEST_F(ProxyTest, SleepsLonger_WhenGraphsPause) {
  std::shared_ptr<void> graph = proxies_[0]->expect_graph();
  EXPECT_TRUE(comes([this] { return rounds_meanwhile(0) <= 210; }));
  post();
  EXPECT_TRUE(arrives());
  graph.reset();
  EXPECT_TRUE(comes([this] { return rounds_meanwhile(0) <= 4; }));
}

// Replays follow each other, and thread blocks announce no message.
TEST(ProxySleeps, AreAsShortBetweenReplays_AsDuringCall) {
  EXPECT_EQ(longest_sleep_ns({.graphs = true, .still_ns = 0}), 0);
  for (const std::int64_t still_ns : {kSpinNs, kReplayNs - 1}) {
    EXPECT_EQ(longest_sleep_ns({.graphs = true, .still_ns = still_ns}), kMaxCallSleepNs);
    EXPECT_EQ(longest_sleep_ns({.in_call = true, .still_ns = still_ns}), kMaxCallSleepNs);
  }
  EXPECT_LE(kMaxCallSleepNs, 50'000);
}

TEST(ProxySleeps, AreLong_WithoutMessages) {
  EXPECT_EQ(longest_sleep_ns({.graphs = true, .still_ns = kReplayNs}), kMaxGraphSleepNs);
  EXPECT_EQ(longest_sleep_ns({.in_call = true, .lost = true, .still_ns = kReplayNs}), kMaxGraphSleepNs);
  EXPECT_EQ(longest_sleep_ns({.still_ns = 0}), kMaxIdleSleepNs);
  EXPECT_EQ(longest_sleep_ns({.graphs = true, .failed = true, .still_ns = 0}), kMaxIdleSleepNs);
}

TEST_F(ProxyTest, Sleeps_AfterFailure) {
  goes_on_ = false;
  expect_call(0, 1);
  ASSERT_TRUE(comes([this] { return looks_[0] > 0; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LE(rounds_meanwhile(0), 4U);
  EXPECT_EQ(looks_[0], 1U);
}

TEST_F(ProxyTest, ChecksPeers_AfterFailedCall) {
  expect_call(0, 1);
  store_release(&failed_[0], 1U);
  end_call(0, 1);
  expect_call(0, 1);  // Announces the next call of the stream, although the previous call has failed.
  EXPECT_TRUE(comes([this] { return looks_[0] > 0; }));
}

// The socket of a lost connection would wake a sleeping thread repeatedly, so a sleeping thread ignores it.
TEST_F(ProxyTest, DetectsLostConnection_DuringCallsOnly) {
  proxies_[1].reset();
  both_.ends[1].reset();
  ASSERT_TRUE(comes([this] { return both_.ends[0]->lost(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LE(rounds_meanwhile(0), 4U);
  EXPECT_EQ(looks_[0], 0U);
  expect_call(0, 1);
  EXPECT_TRUE(comes([this] { return looks_[0] > 0; }));
}

TEST_F(ProxyTest, DetectsLostConnection_WhenGraphsMayRun) {
  const std::shared_ptr<void> graph = proxies_[0]->expect_graph();
  proxies_[1].reset();
  both_.ends[1].reset();
  EXPECT_TRUE(comes([this] { return looks_[0] > 0; }));
}

TEST_F(ProxyTest, ChecksPeers_WhenNoteArrives) {
  const std::byte note[8] = {};
  both_.ends[1]->send(0, note);
  EXPECT_TRUE(comes([this] { return looks_[0] > 0; }));
}

TEST_F(ProxyTest, StopsChecking_AfterStopPolling) {
  proxies_[0]->stop_polling();
  expect_call(0, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(looks_[0], 0U);
  post();
  EXPECT_TRUE(arrives());
}

class Sysfs : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  const std::string root_ = testing::TempDir() + "tutti-sysfs-" + std::to_string(::getpid());
};

TEST_F(Sysfs, FindsCpusNearInterface) {
  write("/class/net/eth7/device/numa_node", "1\n");
  write("/class/net/eth8/device/numa_node", "-1\n");
  write("/devices/system/node/node1/cpulist", "2-4,9,16-17\n");
  EXPECT_EQ(node_of("eth7", root_), 1);
  EXPECT_EQ(node_of("eth8", root_), std::nullopt);
  EXPECT_EQ(node_of("lo", root_), std::nullopt);
  EXPECT_EQ(node_of("", root_), std::nullopt);
  EXPECT_EQ(cpus_of(1, root_), (std::vector<std::uint32_t>{2, 3, 4, 9, 16, 17}));
  EXPECT_TRUE(cpus_of(0, root_).empty());
}

TEST(RunOn, KeepsToAllowedCpus) {
  std::thread([] {
    cpu_set_t before, after;
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    run_on({CPU_SETSIZE - 1});  // A CPU that the thread may not use.
    ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
    std::uint32_t first = 0;
    while (!CPU_ISSET(first, &before)) ++first;
    run_on({first, CPU_SETSIZE - 1});
    ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_COUNT(&after) == 1 && CPU_ISSET(first, &after));
  }).join();
}

TEST(RunOn, SupportsCpusBeyondOneSet) {
  const test::ManyCpus kernel({7, 1023, 1500, 4095});
  run_on({1023, 1500, 2000});
  EXPECT_EQ(own_cpus(), (std::vector<std::uint32_t>{1023, 1500}));
}

TEST(Connection, KnowsItsInterface) {
  const Connections both;
  EXPECT_EQ(interface_name(both.ends[0]->socket()), "lo");
}

}  // namespace
}  // namespace tutti::test
