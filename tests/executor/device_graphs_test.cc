// Graphs of a device's work, and errors of captures.
#include "tests/executor/device_fixture.h"

namespace tutti::test {
namespace {

class DeviceGraphTest : public DeviceTest {
 protected:
  std::uint64_t capture_of(DeviceStream stream) { return device().capture_of(stream).value(); }
};

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceGraphTest, testing::ValuesIn(device_kinds()), kind_of);

// The ranks are in two streams joined by events, and their calls wait for each other.
TEST_P(DeviceGraphTest, ComputesCorrectResults_InEachReplay) {
  prepare("two_shot");
  DeviceReach reach(device());
  std::pmr::vector<Number> copied(kCount, 0, &reach);
  auto* to = reinterpret_cast<std::byte*>(copied.data());
  const BatchCall zero = calls_->call(0);
  const auto fork = event();
  const auto join = event();
  ASSERT_TRUE(rig_->begin_capture(a_).ok());
  ASSERT_TRUE(fork->record(a_).ok());
  ASSERT_TRUE(fork->hold(b_).ok());
  EXPECT_NE(capture_of(a_), 0U);
  EXPECT_EQ(capture_of(b_), capture_of(a_));
  EXPECT_EQ(capture_of(c_), 0U);
  ASSERT_TRUE(calls_->launch({zero}, a_).ok());
  ASSERT_TRUE(calls_->launch({calls_->call(1)}, b_).ok());
  ASSERT_TRUE(join->record(b_).ok());
  ASSERT_TRUE(join->hold(a_).ok());
  ASSERT_TRUE(device().copy(to, zero.call.self.output, kCount * sizeof(Number), a_).ok());
  const auto graph = rig_->end_capture(a_).value();
  EXPECT_EQ(capture_of(b_), 0U);
  expect_done(a_);
  expect_done(b_);
  EXPECT_EQ(calls_->passed(0), 0U);  // The captured calls have not run.
  for (std::uint32_t replay = 0; replay < 3; ++replay) {
    calls_->rank_set().load(0, 10 + replay);
    ASSERT_TRUE(graph->replay(c_).ok());
    expect_done(c_);
    EXPECT_EQ(calls_->rank_set().error(), "");
    EXPECT_TRUE(std::equal(copied.begin(), copied.end(), reinterpret_cast<Number*>(zero.call.self.output)));
  }
}

// Objects of a graph outlive its replays, even if the graph is destroyed during one.
TEST_P(DeviceGraphTest, KeepsItsObjects) {
  DeviceReach reach(device());
  std::pmr::vector<std::uint32_t> words(1, 0, &reach);
  std::weak_ptr<void> held;
  ASSERT_TRUE(rig_->begin_capture(a_).ok());
  {
    const auto given = std::make_shared<int>(7);
    held = given;
    ASSERT_TRUE(device().keep_for_graph(a_, given).ok());
  }
  ASSERT_TRUE(device().hold_until(&words[0], 1, a_).ok());
  auto graph = rig_->end_capture(a_).value();
  ASSERT_TRUE(graph->replay(a_).ok());
  graph = nullptr;
  EXPECT_TRUE(stays_false([&] { return held.expired(); }));
  store_release(&words[0], 1U);
  expect_done(a_);
  EXPECT_TRUE(comes_true([&] { return held.expired(); }));
}

TEST_P(DeviceGraphTest, ReleasesObjects_OfFailedCapture) {
  std::weak_ptr<void> held;
  ASSERT_TRUE(rig_->begin_capture(a_).ok());
  {
    const auto given = std::make_shared<int>(7);
    held = given;
    ASSERT_TRUE(device().keep_for_graph(a_, given).ok());
  }
  EXPECT_FALSE(rig_->synchronize(a_).ok());
  EXPECT_FALSE(rig_->end_capture(a_).ok());
  EXPECT_TRUE(comes_true([&] { return held.expired(); }));
  EXPECT_FALSE(device().keep_for_graph(a_, std::make_shared<int>(7)).ok()) << "nothing is captured";
}

TEST_P(DeviceGraphTest, WritesAndWaitsForWords_InEachReplay) {
  DeviceReach reach(device());
  std::pmr::vector<std::uint32_t> words(2, 0, &reach);
  ASSERT_TRUE(rig_->begin_capture(a_).ok());
  ASSERT_TRUE(device().put_word(&words[0], 7, a_).ok());
  ASSERT_TRUE(device().hold_until(&words[0], 0, a_).ok());
  ASSERT_TRUE(device().put_word(&words[1], 8, a_).ok());
  const auto graph = rig_->end_capture(a_).value();
  for (int replay = 0; replay < 2; ++replay) {
    store_release(&words[1], 0U);
    ASSERT_TRUE(graph->replay(a_).ok());
    EXPECT_TRUE(comes_true([&] { return load_acquire(&words[0]) == 7; }));
    EXPECT_TRUE(stays_false([&] { return load_acquire(&words[1]) != 0; }));
    store_release(&words[0], 0U);
    expect_done(a_);
    EXPECT_EQ(words[1], 8U);
  }
}

TEST_P(DeviceGraphTest, WaitsForEventAndMovesEvent_InEachReplay) {
  DeviceReach reach(device());
  std::pmr::vector<std::uint32_t> words(3, 0, &reach);
  const auto before = event(), after = event();
  EXPECT_FALSE(before->hold_in_replays(a_).ok()) << "nothing is captured";
  ASSERT_TRUE(rig_->begin_capture(a_).ok());
  ASSERT_TRUE(before->hold_in_replays(a_).ok());
  ASSERT_TRUE(device().put_word(&words[1], 1, a_).ok());
  ASSERT_TRUE(after->record_in_replays(a_).ok());
  const auto graph = rig_->end_capture(a_).value();
  for (int replay = 0; replay < 2; ++replay) {
    for (std::uint32_t& word : words) store_release(&word, 0U);
    ASSERT_TRUE(device().hold_until(&words[0], 1, b_).ok());
    ASSERT_TRUE(before->record(b_).ok());
    ASSERT_TRUE(graph->replay(a_).ok());
    ASSERT_TRUE(after->hold(c_).ok());
    ASSERT_TRUE(device().put_word(&words[2], 1, c_).ok());
    EXPECT_TRUE(stays_false([&] { return load_acquire(&words[1]) != 0 || load_acquire(&words[2]) != 0; }));
    store_release(&words[0], 1U);
    for (const DeviceStream stream : {a_, b_, c_}) expect_done(stream);
    EXPECT_EQ(words[1] + words[2], 2U);
  }
}

TEST_P(DeviceGraphTest, NumbersCaptures) {
  std::uint64_t last = 0;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(rig_->begin_capture(a_).ok());
    EXPECT_NE(capture_of(a_), last);
    last = capture_of(a_);
    EXPECT_TRUE(rig_->end_capture(a_).ok());
  }
}

// A capture affects only its stream.
TEST_P(DeviceGraphTest, LeavesRestOfDeviceUsable) {
  const auto outside = event();
  ASSERT_TRUE(rig_->begin_capture(a_).ok());
  std::byte* memory = device().allocate(1000).value();
  const HostMemory host = device().allocate_host(1000).value();
  EXPECT_TRUE(device().upload(memory, std::vector<std::byte>(1000, std::byte{5})).ok());
  EXPECT_TRUE(device().copy(host.device, memory, 1000, b_).ok());
  EXPECT_TRUE(outside->record(b_).ok());
  EXPECT_TRUE(comes_true([&] { return outside->reached().value(); }));
  EXPECT_EQ(host.host[999], std::byte{5});
  device().free_host(host);
  device().free(memory);
  EXPECT_TRUE(rig_->end_capture(a_).ok());
}

TEST_P(DeviceGraphTest, RejectsWaitForOutsideEvent) {
  const auto outside = event();
  ASSERT_TRUE(outside->record(b_).ok());
  ASSERT_TRUE(rig_->begin_capture(a_).ok());
  EXPECT_FALSE(outside->hold(a_).ok());
  EXPECT_FALSE(rig_->end_capture(a_).ok());
  EXPECT_EQ(capture_of(a_), 0U);
}

TEST_P(DeviceGraphTest, RejectsEnd_BeforeStreamsAreJoined) {
  prepare("two_shot");
  const auto fork = event();
  ASSERT_TRUE(rig_->begin_capture(a_).ok());
  ASSERT_TRUE(fork->record(a_).ok());
  ASSERT_TRUE(fork->hold(b_).ok());
  ASSERT_TRUE(calls_->launch({calls_->call(0)}, b_).ok());
  EXPECT_FALSE(rig_->end_capture(a_).ok());
  EXPECT_EQ(capture_of(b_), 0U);
  expect_done(b_);
  EXPECT_EQ(calls_->passed(0), 0U);
}

TEST_P(DeviceGraphTest, CannotQueryItsEvents) {
  const auto inside = event();
  ASSERT_TRUE(rig_->begin_capture(a_).ok());
  ASSERT_TRUE(inside->record(a_).ok());
  ASSERT_TRUE(rig_->end_capture(a_).ok());
  EXPECT_FALSE(inside->reached().ok());
}

}  // namespace
}  // namespace tutti::test
