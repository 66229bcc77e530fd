// Ranks in several processes, or on several devices, that have registered windows with each other.
#pragma once

#include <string>
#include <string_view>
#include <thread>

#include "tests/bootstrap/shared_unique_id.h"
#include "tests/communicator/device/device_ranks.h"

namespace tutti::test {

// Elements of each of two buffers in a window; enough that the tuner chooses a mapped algorithm rather than Simple.
inline constexpr std::uint64_t kCount = 40000;
inline constexpr std::size_t kBytes = 2 * kCount * sizeof(std::int32_t);

// Registered device memory of a rank. The host cannot access it.
class Shown {
 public:
  Shown(DeviceRig& rig, DeviceRanks& ranks, WindowGuarantee promise = WindowGuarantee::symmetric)
      : Shown(rig, ranks, rig.device().allocate(kBytes).value(), promise) {}
  // Takes ownership of kBytes of memory.
  Shown(DeviceRig& rig, DeviceRanks& ranks, std::byte* memory, WindowGuarantee promise = WindowGuarantee::symmetric)
      : rig_(rig), ranks_(ranks), memory_(memory), window_(show(promise)) {}
  ~Shown() {
    (void)ranks_.backend(0).await_own_calls();  // After a failed test, remote accesses may still run.
    rig_.device().free(memory_);
  }
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;

  std::byte* at(std::uint64_t element) const { return memory_ + element * sizeof(std::int32_t); }
  WindowHandle window() const { return window_; }
  WindowHandle show(WindowGuarantee promise) {
    auto shown = ranks_.backend(0).register_window({memory_, kBytes, promise});
    EXPECT_TRUE(shown.ok()) << (shown.ok() ? "" : std::move(shown).status().message());
    return window_ = shown.value();
  }
  Status withdraw() { return ranks_.backend(0).deregister_window(window_); }

  void write(std::uint64_t element, std::int32_t value) {
    const std::vector<std::int32_t> items(kCount, value);
    EXPECT_TRUE(rig_.device().upload(at(element), std::as_bytes(std::span(items))).ok());
  }
  // Returns the value of kCount elements, and expects that they are equal.
  std::int32_t read(std::uint64_t element) {
    ranks_.synchronize();  // take() allocates memory, which may wait for the device.
    auto* items = ranks_.take<std::int32_t>(kCount, -1);
    const auto* from = at(element);
    EXPECT_TRUE(
        rig_.device().copy(reinterpret_cast<std::byte*>(items), from, kCount * sizeof *items, ranks_.stream(0)).ok());
    ranks_.synchronize();
    EXPECT_EQ(std::count(items, items + kCount, items[0]), static_cast<std::ptrdiff_t>(kCount));
    return items[0];
  }

 private:
  DeviceRig& rig_;
  DeviceRanks& ranks_;
  std::byte* memory_;
  WindowHandle window_;
};

inline Status all_reduce(DeviceRanks& own, const void* input, void* output, std::int64_t timeout_ms = 60'000) {
  DeviceCall call =
      own.call(0, call_of(Collective::all_reduce, DataType::int32, kCount, input, static_cast<std::byte*>(output)));
  call.options.timeout_ms = test_timeout_ms(own.rig(), timeout_ms);
  return enqueue({&call, 1});
}

// Returns whether the last call accessed memory of peers in place.
inline bool ran_mapped(DeviceRanks& own) {
  return std::string_view(own.backend(0).last_run().algorithm).ends_with("_mapped");
}

// Returns an empty string if `right`, else `answer`.
inline std::string unless(bool right, const std::string& answer) { return right ? "" : answer; }

// Work of a rank in a process or a thread, with its own rig and communicator. Returns an error or an empty string.
using Work = std::function<std::string(DeviceRig&, DeviceRanks&, Rank)>;

inline constexpr Rank kRanks = 3;

// Without LL, and the staging ring, which are faster than mapped algorithms.
inline CommunicatorOptions without_ll() {
  CommunicatorOptions options;
  options.protocol = "Simple";
  options.update_agreement_hash();
  return options;
}

class CallsOfProcesses : public testing::TestWithParam<DeviceKind> {
 protected:
  // A child process checks whether the device exists, since a process that has used CUDA must not fork.
  void SetUp() override {
    Processes probe;
    probe.start([]() -> std::string { return GetParam().make() == nullptr ? "none" : "there"; });
    if (probe.report(0) != "there") GTEST_SKIP() << "there is no such device here";
  }
  void start(Rank rank, const Work& work) {
    processes_.start([=, this]() -> std::string {
      const auto rig = GetParam().make();
      Communicators members;
      members.push_back(std::move(Communicator::create(meeting_.id(), rank, kRanks, without_ll())).value());
      DeviceRanks own(*rig, std::move(members));
      return work(*rig, own, rank);
    });
  }
  void expect_right(const Work& work) {
    for (Rank rank = 0; rank < kRanks; ++rank) start(rank, work);
    for (const std::string& report : processes_.reports()) EXPECT_EQ(report, "");
  }

  Meeting meeting_;
  Processes processes_;
};

// Fixture with several devices of one process, which are GPU emulators.
class CallsOfDevices : public testing::Test {
 protected:
  void expect_right(const Work& work) {
    Communicators members = std::move(Communicator::create_all(kRanks, without_ll())).value();
    std::vector<std::unique_ptr<DeviceRig>> rigs;
    for (Rank rank = 0; rank < kRanks; ++rank) rigs.push_back(host_rig({.ordinal = rank}));
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        Communicators one;
        one.push_back(std::move(members[rank]));
        DeviceRanks own(*rigs[rank], std::move(one));
        EXPECT_EQ(work(*rigs[rank], own, rank), "") << "rank " << rank;
        (void)own[0].finalize();  // Waits for all ranks, which may access the memory of this one until then.
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
};

}  // namespace tutti::test
