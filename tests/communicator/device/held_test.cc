// Streams that are held for time-sliced calls, while the launch of a call blocks in the device. Failures must release
// them.
#include <atomic>
#include <thread>

#include "src/base/atomic.h"
#include "src/communicator/peers/deferred_frees.h"
#include "tests/bootstrap/processes.h"
#include "tests/communicator/device/device_ranks.h"

namespace tutti::test {
namespace {

constexpr std::uint64_t kCount = 300;
constexpr int kUntouched = -7;

template <typename Claim>
void await(Claim&& claim) {
  while (!claim()) std::this_thread::yield();
}

// A device on which a thread frees memory, which waits for a stream of the program. No launch returns until
// release_all().
class BusyDevice {
 public:
  BusyDevice() : word_(rig_->device().allocate_host(sizeof(std::uint32_t)).value()), stream_(rig_->make_stream()) {}
  ~BusyDevice() {
    release_all();
    rig_->destroy_stream(stream_);
    rig_->device().free_host(word_);
  }
  BusyDevice(const BusyDevice&) = delete;
  BusyDevice& operator=(const BusyDevice&) = delete;

  DeviceRig& rig() { return *rig_; }
  std::uint32_t held_launches() { return dynamic_cast<HostDevice&>(rig_->device()).held_launches(); }

  void begin() {
    auto* word = reinterpret_cast<std::uint32_t*>(word_.device);
    ASSERT_TRUE(rig_->device().hold_until(word, 1, stream_).ok());
    std::byte* memory = rig_->device().allocate(1).value();
    freeing_ = std::thread([this, memory] { rig_->device().free(memory); });
    await([this] { return dynamic_cast<HostDevice&>(rig_->device()).freeing(); });
  }
  void release_all() {
    store_release(reinterpret_cast<std::uint32_t*>(word_.host), 1U);
    if (freeing_.joinable()) freeing_.join();
  }

 private:
  std::unique_ptr<DeviceRig> rig_ = host_rig({.sharing = ComputeSharing::none, .free_holds_launches = true});
  HostMemory word_;
  DeviceStream stream_;
  std::thread freeing_;
};

// Rank 0 makes an all-gather that rank 1 does not make. Rank 0 needs no peer to copy its own block to the output, so an
// unchanged output proves that the call did not run.
class HeldStreams : public testing::Test {
 protected:
  void call(std::int64_t timeout_ms) {
    input_ = ranks_.take<int>(kCount, 1);
    output_ = ranks_.take<int>(2 * kCount, kUntouched);
    DeviceCall call = ranks_.call(0, call_of(Collective::all_gather, DataType::int32, kCount, input_, output_));
    call.options.timeout_ms = timeout_ms;
    busy_.begin();
    ASSERT_TRUE(enqueue({&call, 1}).ok());
    await([this] { return busy_.held_launches() == 1; });
  }
  // Expects that the failure releases the stream while the launch is still blocked. Once the launch returns, its thread
  // blocks must find the failure and write nothing.
  void expect_let_go(Code code, const char* words) {
    EXPECT_TRUE(busy_.rig().synchronize(ranks_.stream(0)).ok());
    EXPECT_EQ(busy_.held_launches(), 1U);
    const Status failure = ranks_[0].failure();
    EXPECT_EQ(failure.code(), code) << failure.message();
    EXPECT_NE(failure.message().find(words), std::string::npos) << failure.message();
    busy_.release_all();
    EXPECT_FALSE(ranks_[0].finalize().ok());
    EXPECT_EQ(std::count(output_, output_ + 2 * kCount, kUntouched), static_cast<std::ptrdiff_t>(2 * kCount));
  }

  BusyDevice busy_;
  DeviceRanks ranks_{busy_.rig(), 2};
  int* input_ = nullptr;
  int* output_ = nullptr;
};

TEST_F(HeldStreams, AreReleased_OnAbort) {
  call(0);
  ranks_[1].abort();
  expect_let_go(Code::aborted, "rank 1 aborted");
}

TEST_F(HeldStreams, AreReleased_AtDeadline) {
  call(1000);
  expect_let_go(Code::timeout, "waits for the whole device while a stream is held");
}

// Enqueues a second call while the launch of the first one is blocked. The failure must release the stream for both.
TEST_F(HeldStreams, AreReleased_ForAllCalls) {
  call(0);
  DeviceCall second = ranks_.call(0, call_of(Collective::all_gather, DataType::int32, kCount, input_, output_));
  ASSERT_TRUE(enqueue({&second, 1}).ok());
  ranks_[0].abort();
  expect_let_go(Code::aborted, "aborted");
}

// Memory of another communicator and of the program is freed while the stream is held. The device would wait for the
// stream, so the frees must be deferred until the stream is released.
TEST_F(HeldStreams, DeferDeviceFrees) {
  auto& device = dynamic_cast<HostDevice&>(busy_.rig().device());
  auto others = std::make_unique<DeviceRanks>(busy_.rig(), 2);
  const std::uint64_t mappings = device.usage().mappings;
  call(0);
  bool freed = false;
  free_when_idle([&] { freed = true; });
  others.reset();
  EXPECT_FALSE(freed);
  EXPECT_EQ(device.usage().mappings, mappings);
  ranks_[1].abort();
  expect_let_go(Code::aborted, "rank 1 aborted");
  run_deferred_frees();
  EXPECT_TRUE(freed);
  EXPECT_LT(device.usage().mappings, mappings);
}

// A free would wait for the call of rank 0, which waits for the call that this thread makes next.
TEST(DeferredFrees, WaitUntilNoCallIsInFlight) {
  const std::unique_ptr<DeviceRig> rig = host_rig({});
  auto& device = dynamic_cast<HostDevice&>(rig->device());
  DeviceRanks ranks(*rig, 2);
  auto others = std::make_unique<DeviceRanks>(*rig, 2);
  const auto sum_at = [&ranks](Rank rank) {
    auto* values = ranks.take<std::int32_t>(kCount);
    return ranks.call(rank, call_of(Collective::all_reduce, DataType::int32, kCount, values, values));
  };
  const DeviceCall first = sum_at(0), second = sum_at(1);
  const std::uint64_t mappings = device.usage().mappings;
  ASSERT_TRUE(enqueue({&first, 1}).ok());
  bool freed = false;
  free_when_idle([&] { freed = true; });
  others.reset();
  EXPECT_FALSE(freed);
  EXPECT_EQ(device.usage().mappings, mappings);
  ASSERT_TRUE(enqueue({&second, 1}).ok());
  ranks.synchronize();
  run_deferred_frees();
  EXPECT_TRUE(freed);
  EXPECT_LT(device.usage().mappings, mappings);
}

// Frees of a rank's memory defer frees of its mappings.
TEST(DeferredFrees, RunFreesThatTheyDefer) {
  bool freed = false;
  free_when_idle([&] { free_when_idle([&] { freed = true; }); });
  EXPECT_TRUE(freed);
}

// A program may destroy its device after the last communicator of the device has ended.
TEST(DeferredFrees, AreDone_WhenOtherThreadsFreeAsWell) {
  constexpr int kThreads = 4, kFrees = 2000;
  std::atomic<int> late = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < kFrees; ++n) {
        const auto freed = std::make_shared<std::atomic<bool>>(false);
        free_when_idle([freed] { *freed = true; });
        if (!*freed) ++late;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(late, 0);
}

TEST(DeferredFrees, AreLeftToTheParent_AfterFork) {
  bool freed = false;
  std::atomic<bool> idle = false;
  const DeviceCallSource source([&] { return idle.load(); });
  free_when_idle([&] { freed = true; });
  Processes child;
  child.start([&] {
    idle = true;
    run_deferred_frees();
    return freed ? "freed" : "not freed";
  });
  EXPECT_EQ(child.report(0), "not freed");
  idle = true;
  run_deferred_frees();
  EXPECT_TRUE(freed);
}

}  // namespace
}  // namespace tutti::test
