// Properties of every device that the communicator relies on.
#include <cstdlib>
#include <cstring>

#include "algorithms/catalogue.h"
#include "src/base/atomic.h"
#include "src/executor/thread_block/residual.h"
#include "tests/executor/device_fixture.h"
#include "tests/executor/threaded_ranks.h"

namespace tutti::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceTest, testing::ValuesIn(device_kinds()), kind_of);

// ---- Memory ----

TEST_P(DeviceTest, AllocatesZeroedAlignedMemory) {
  const std::vector<std::byte> zeroes(70'000), ones(70'000, std::byte{1});
  for (int i = 0; i < 3; ++i) {  // The second iteration may get recycled memory.
    std::byte* memory = device().allocate(zeroes.size()).value();
    const HostMemory host = device().allocate_host(zeroes.size()).value();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0U);
    EXPECT_EQ(std::memcmp(host.host, zeroes.data(), zeroes.size()), 0);
    std::memset(host.host, 1, ones.size());
    EXPECT_TRUE(device().copy(host.device, memory, zeroes.size(), a_).ok());
    expect_done(a_);
    EXPECT_EQ(std::memcmp(host.host, zeroes.data(), zeroes.size()), 0);
    EXPECT_TRUE(device().upload(memory, ones).ok());
    EXPECT_TRUE(device().copy(host.device, memory, ones.size(), a_).ok());
    expect_done(a_);
    EXPECT_EQ(std::memcmp(host.host, ones.data(), ones.size()), 0);
    device().free_host(host);
    device().free(memory);
  }
}

TEST_P(DeviceTest, ReusesFreedBlockOfSameSize) {
  const std::vector<std::byte> ones(70'000, std::byte{1}), zeroes(70'000);
  std::byte* memory = device().allocate(ones.size()).value();
  ASSERT_TRUE(device().upload(memory, ones).ok());
  device().recycle(memory);
  std::byte* more = device().allocate(ones.size() + 1).value();
  EXPECT_NE(more, memory);
  EXPECT_EQ(device().allocate(ones.size()).value(), memory);
  const HostMemory host = device().allocate_host(ones.size()).value();
  ASSERT_TRUE(device().copy(host.device, memory, ones.size(), a_).ok());
  expect_done(a_);
  EXPECT_EQ(std::memcmp(host.host, zeroes.data(), zeroes.size()), 0) << "as it was left";
  device().free_host(host);
  for (std::byte* each : {memory, more}) device().free(each);
}

TEST_P(DeviceTest, DoesNotReuseMemoryThatWasSetAside) {
  constexpr std::size_t kBytes = 70'000;
  std::byte* shared = device().allocate_shared(kBytes).value();
  std::byte* plain = device().allocate(kBytes).value();
  for (std::byte* memory : {shared, plain}) device().set_aside(memory);
  std::byte* const others[] = {device().allocate_shared(kBytes).value(), device().allocate(kBytes).value()};
  for (std::byte* memory : others) {
    EXPECT_TRUE(memory != shared && memory != plain);
    device().free(memory);
  }
}

TEST_P(DeviceTest, AccessesMappedHostMemory) {
  constexpr std::size_t kBytes = 8192;
  auto* pages = static_cast<std::byte*>(std::aligned_alloc(4096, kBytes));
  std::memset(pages, 3, kBytes);
  const HostMemory mapped = device().map_host(pages, kBytes).value();
  EXPECT_EQ(mapped.host, pages);
  ASSERT_TRUE(device().copy(mapped.device, mapped.device + kBytes - 9, 9, nullptr).ok());
  ASSERT_TRUE(device().copy(mapped.device + kBytes / 2, mapped.device, kBytes / 4, nullptr).ok());
  expect_done(nullptr);
  EXPECT_EQ(pages[kBytes / 2], std::byte{3});
  EXPECT_FALSE(device().map_host(pages, kBytes / 2).ok()) << "of another length";
  EXPECT_TRUE(device().map_host(pages, kBytes).ok());
  for (int time = 0; time < 2; ++time) device().unmap_host(mapped);
  std::free(pages);
}

// ---- Streams and events: their work waits for a rank that has not been launched ----

// Keeps a call's output as it is at some point of a stream. The copy is in device memory, since a copy from host memory
// to host memory is synchronous in CUDA.
class Copied {
 public:
  explicit Copied(DeviceRig& rig) : rig_(rig), memory_(rig.device().allocate(kBytes).value()) {}
  ~Copied() { rig_.device().free(memory_); }
  Copied(const Copied&) = delete;
  Copied& operator=(const Copied&) = delete;
  void put(const BatchCall& call, DeviceStream stream) {
    ASSERT_TRUE(rig_.device().copy(memory_, call.call.self.output, kBytes, stream).ok());
  }
  bool equals(const BatchCall& call, DeviceStream stream) {
    DeviceReach reach(rig_.device());
    std::pmr::vector<Number> numbers(kCount, 0, &reach);
    auto* const to = reinterpret_cast<std::byte*>(numbers.data());
    if (!rig_.device().copy(to, memory_, kBytes, stream).ok() || !rig_.synchronize(stream).ok()) return false;
    return std::memcmp(to, call.call.self.output, kBytes) == 0;
  }

 private:
  static constexpr std::size_t kBytes = kCount * sizeof(Number);

  DeviceRig& rig_;
  std::byte* const memory_;
};

TEST_P(DeviceTest, RunsWorkOfStreamInOrder) {
  prepare("two_shot");
  Copied copied(*rig_);
  const BatchCall zero = calls_->call(0), one = calls_->call(1);
  const auto end = event();
  ASSERT_TRUE(calls_->launch({zero}, a_).ok());
  copied.put(zero, a_);
  ASSERT_TRUE(end->record(a_).ok());
  EXPECT_TRUE(stays_false([&] { return end->reached().value(); }));
  ASSERT_TRUE(calls_->launch({one}, b_).ok());
  expect_done(a_);
  expect_done(b_);
  EXPECT_TRUE(end->reached().value());
  EXPECT_EQ(calls_->rank_set().error(), "");
  EXPECT_TRUE(copied.equals(zero, c_));
}

TEST_P(DeviceTest, HoldsStreamUntilEvent) {
  prepare("two_shot");
  Copied copied(*rig_);
  const BatchCall zero = calls_->call(0), one = calls_->call(1);
  const auto called = event();
  const auto end = event();
  ASSERT_TRUE(calls_->launch({zero}, a_).ok());
  ASSERT_TRUE(called->record(a_).ok());
  ASSERT_TRUE(called->hold(c_).ok());
  ASSERT_TRUE(called->record(b_).ok());  // A later record does not affect the stream already held.
  copied.put(zero, c_);
  ASSERT_TRUE(end->record(c_).ok());
  EXPECT_TRUE(stays_false([&] { return end->reached().value(); }));
  EXPECT_TRUE(comes_true([&] { return called->reached().value(); }));
  ASSERT_TRUE(calls_->launch({one}, b_).ok());
  expect_done(c_);
  EXPECT_TRUE(copied.equals(zero, c_));
  expect_done(a_);
  expect_done(b_);
  EXPECT_EQ(calls_->rank_set().error(), "");
}

TEST_P(DeviceTest, HoldsNothing_ForUnrecordedEvent) {
  const auto never = event();
  EXPECT_TRUE(never->reached().value());
  EXPECT_TRUE(never->hold(a_).ok());
  expect_done(a_);
}

// Uses the same timer twice. The timer ignores work outside its marks.
TEST_P(DeviceTest, MeasuresTimeBetweenMarks) {
  const auto timer = device().make_timer().value(), around = device().make_timer().value();
  const HostMemory word = device().allocate_host(sizeof(std::uint32_t)).value();
  auto* on_host = reinterpret_cast<std::uint32_t*>(word.host);
  auto* on_device = reinterpret_cast<std::uint32_t*>(word.device);
  for (std::uint32_t value = 1; value <= 2; ++value) {
    ASSERT_TRUE(around->begin(a_).ok());
    ASSERT_TRUE(timer->begin(a_).ok());
    ASSERT_TRUE(device().hold_until(on_device, value, a_).ok());
    ASSERT_TRUE(timer->end(a_).ok());
    ASSERT_TRUE(around->end(a_).ok());
    EXPECT_TRUE(stays_false([&] { return timer->took_ns().value().has_value(); })) << "it waits for nothing";
    store_release(on_host, value);
    expect_done(a_);
    const auto took_ns = timer->took_ns().value(), all_ns = around->took_ns().value();
    ASSERT_TRUE(took_ns.has_value() && all_ns.has_value());
    EXPECT_GT(*took_ns, 0);
    EXPECT_LE(*took_ns, *all_ns);
  }
  device().free_host(word);
}

// ---- Calls ----

TEST_P(DeviceTest, RunsCalls_InOneLaunchAndInSeveralStreams) {
  ThreadedRanks threaded_ranks(1);
  for (const Algorithm* algorithm : catalogue(Collective::all_reduce)) {
    if (!algorithm->supports(of_ranks(2))) continue;
    for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
      for (const auto streams : {DeviceEngine::Streams::one, DeviceEngine::Streams::one_per_rank}) {
        DeviceEngine engine(*rig_, streams);
        TestCall test_call = test_call_of(2);
        test_call.plans[0] = plans_of(of_ranks(2), algorithm->name());
        test_call.protocol = protocol;
        test_call.straight = streams == DeviceEngine::Streams::one;
        test_call.engine = &engine;
        EXPECT_EQ(threaded_ranks.run(test_call), "") << algorithm->name() << ", protocol " << int(protocol);
      }
    }
  }
}

TEST_P(DeviceTest, ReportsEndOfCall) {
  prepare("two_shot", 2, 2);
  const BatchCall zero[] = {calls_->call(0, 0), calls_->call(0, 1)};
  const BatchCall one[] = {calls_->call(1, 0), calls_->call(1, 1)};
  for (const BatchCall& call : zero) ASSERT_TRUE(calls_->launch({call}, a_).ok());
  EXPECT_TRUE(stays_false([&] { return calls_->passed(0) != 0; }));
  ASSERT_TRUE(calls_->launch({one[0]}, b_).ok());
  EXPECT_TRUE(comes_true([&] { return calls_->passed(0) == 1; }));
  EXPECT_TRUE(stays_false([&] { return calls_->passed(0) != 1; }));
  ASSERT_TRUE(calls_->launch({one[1]}, b_).ok());
  expect_done(a_);
  expect_done(b_);
  EXPECT_EQ(calls_->passed(0), 2U);
  EXPECT_EQ(calls_->rank_set().error(), "");
}

// A rank sends in a call only after it has ended its earlier calls, so its credits for these need not be read.
TEST_P(DeviceTest, TakesMessageOfPeerAsCredit) {
  TestCall test_call = test_call_of(2);
  test_call.protocol = Protocol::ll;
  calls_->prepare(of_ranks(3), "one_shot", test_call);
  for (std::uint32_t operation = 0; operation < test_call.operations; ++operation) {
    ASSERT_TRUE(
        calls_->launch({calls_->call(0, operation), calls_->call(1, operation), calls_->call(2, operation)}, a_).ok());
    expect_done(a_);
    for (const auto& [spec, lane] : calls_->rank_set().lanes_made().all()) {
      EXPECT_EQ(lane->writing.next, operation + 1);
      EXPECT_EQ(lane->writing.seen, operation) << "messages of earlier calls";
    }
  }
  EXPECT_EQ(calls_->rank_set().error(), "");
}

// A broadcast has no message from the reader, so only credits tell what it has taken.
TEST_P(DeviceTest, ReadsCredits_WhenPeerSendsNothing) {
  TestCall test_call = test_call_of(1);
  test_call.protocol = Protocol::ll;
  calls_->prepare(of_ranks(2, Collective::broadcast), "direct", test_call);
  for (std::uint32_t operation = 0; operation < test_call.operations; ++operation) {
    ASSERT_TRUE(calls_->launch({calls_->call(0, operation), calls_->call(1, operation)}, a_).ok());
    expect_done(a_);
    for (const auto& [spec, lane] : calls_->rank_set().lanes_made().all()) EXPECT_EQ(lane->writing.seen, 0U);
  }
  EXPECT_EQ(calls_->rank_set().error(), "");
}

// A device may load a kernel at its first launch and wait for running thread blocks then, so all kernels must be loaded
// before.
TEST_P(DeviceTest, StartsOtherKernel_WhileThreadBlockWaits) {
  prepare("two_shot_mapped");
  const BatchCall zero = calls_->call(0), one = calls_->call(1);
  const AddressRecord& own = zero.call.exchange->records[0][1];  // Stored before the thread block waits.
  DeviceReach reach(device());
  const std::pmr::vector<KernelRounding> rounding(1, {}, &reach);
  ResidualTask nothing;
  nothing.rounding = rounding.data();
  nothing.compression = CompressionFormat::bf16;
  ASSERT_TRUE(calls_->launch({zero}, a_).ok());
  EXPECT_TRUE(comes_true([&] { return load_acquire(&own.sequence) == 1; }));
  ASSERT_TRUE(device().apply_residual(nothing, b_).ok());
  ASSERT_TRUE(calls_->launch({one}, b_).ok());
  expect_done(a_);
  expect_done(b_);
  EXPECT_EQ(calls_->rank_set().error(), "");
}

TEST_P(DeviceTest, RunsCallsInWorkspace) {
  prepare("two_shot");
  std::vector<BatchCall> calls;
  for (const Rank rank : {0U, 1U}) calls.push_back(calls_->in_workspace(calls_->call(rank)));
  ASSERT_TRUE(calls_->launch(calls, a_).ok());
  expect_done(a_);
  EXPECT_EQ(calls_->rank_set().error(), "");
}

TEST_P(DeviceTest, HoldsStreamUntilWordHasValue) {
  DeviceReach reach(device());
  std::pmr::vector<std::uint32_t> words(2, 0, &reach);
  ASSERT_TRUE(device().put_word(&words[0], 7, a_).ok());
  ASSERT_TRUE(device().hold_until(&words[0], 0, a_).ok());
  ASSERT_TRUE(device().put_word(&words[1], 8, a_).ok());
  EXPECT_TRUE(comes_true([&] { return load_acquire(&words[0]) == 7; }));
  EXPECT_TRUE(stays_false([&] { return load_acquire(&words[1]) != 0; }));
  store_release(&words[0], 0U);
  expect_done(a_);
  EXPECT_EQ(words[1], 8U);
}

// The library's queues work while a stream of the program is blocked.
TEST_P(DeviceTest, HasQueuesForLibrary) {
  DeviceReach reach(device());
  std::pmr::vector<std::uint32_t> words(2, 0, &reach);
  ASSERT_TRUE(device().hold_until(&words[0], 1, a_).ok());
  const DeviceStream queue = device().make_queue().value();
  ASSERT_TRUE(device().put_word(&words[1], 5, queue).ok());
  EXPECT_TRUE(comes_true([&] { return load_acquire(&words[1]) == 5; }));
  store_release(&words[0], 1U);
  expect_done(a_);
  device().drop_queue(queue);
}

TEST_P(DeviceTest, RejectsLaunchesThatDoNotFit) {
  prepare("two_shot");
  std::vector<BatchCall> calls(2, calls_->call(0));
  calls[0].channels = device().traits().thread_blocks / 2;
  calls[1].channels = device().traits().thread_blocks / 2 + 1;
  EXPECT_FALSE(calls_->launch(calls, a_).ok());
  DeviceLaunch one{.count = 1, .thread_block_bytes = device().traits().thread_block_bytes + 1};
  one.batch.calls[0] = calls_->call(0);
  EXPECT_FALSE(device().launch(one, a_).ok());
  EXPECT_FALSE(device().launch({}, a_).ok());
  expect_done(a_);
  EXPECT_EQ(calls_->passed(0), 0U);
}

}  // namespace
}  // namespace tutti::test
