// Fixture and helpers for tests of devices.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/base/share_cpu.h"
#include "tests/executor/device_calls.h"

namespace tutti::test {

inline constexpr std::uint64_t kCount = 24;               // Fits a slot of every protocol.
inline constexpr std::uint64_t kSoon = 1'000'000;         // Timeout in ns that is expected to expire.
inline constexpr int kLooks = 200;                        // Number of checks that a forbidden event has not happened.
inline constexpr auto kNever = std::chrono::seconds(20);  // Time after which an expected event counts as missing.

inline Problem of_ranks(Rank ranks, Collective collective = Collective::all_reduce) {
  return {.collective = collective, .ranks = ranks, .groups = {}};
}

inline TestCall test_call_of(std::uint32_t channels) {
  TestCall test_call;
  test_call.loop.slots = 4;
  test_call.count = kCount;
  test_call.granule = 4;
  test_call.channels = channels;
  return test_call;
}

template <typename Claim>
bool comes_true(Claim&& claim) {
  const auto end = std::chrono::steady_clock::now() + kNever;
  while (!claim()) {
    if (std::chrono::steady_clock::now() > end) return false;
    share_cpu();
  }
  return true;
}

// Returns true if the claim stays false for kLooks checks.
template <typename Claim>
bool stays_false(Claim&& claim) {
  for (int i = 0; i < kLooks; ++i) {
    if (claim()) return false;
    std::this_thread::yield();
  }
  return true;
}

class DeviceTest : public testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    rig_ = GetParam().make();
    if (rig_ == nullptr) GTEST_SKIP() << "there is no such device here";
    for (DeviceStream* stream : {&a_, &b_, &c_}) *stream = rig_->make_stream();
    calls_ = std::make_unique<DeviceCalls>(*rig_);
  }
  void TearDown() override {
    if (rig_ == nullptr) return;
    calls_->fail();  // Stops thread blocks that still wait after a failed test.
    for (DeviceStream stream : {a_, b_, c_}) rig_->destroy_stream(stream);
    calls_.reset();
  }

  Device& device() { return rig_->device(); }
  std::unique_ptr<DeviceEvent> event() { return device().make_event().value(); }
  void expect_done(DeviceStream stream) {
    const Status status = rig_->synchronize(stream);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  void prepare(const char* algorithm, Rank ranks = 2, std::uint32_t operations = 1) {
    TestCall test_call = test_call_of(2);
    test_call.operations = operations;
    calls_->prepare(of_ranks(ranks), algorithm, test_call);
  }
  // Launches a call that sends what it can, and times out.
  void give_up(BatchCall call) {
    call.watch.timeout_ns = kSoon;
    ASSERT_TRUE(calls_->launch({call}, b_).ok());
    expect_done(b_);
  }
  std::unique_ptr<DeviceRig> rig_;
  DeviceStream a_ = nullptr, b_ = nullptr, c_ = nullptr;
  std::unique_ptr<DeviceCalls> calls_;
};

inline std::string kind_of(const testing::TestParamInfo<DeviceKind>& parameter) { return parameter.param.name; }

}  // namespace tutti::test
