// Behavior of the GPU emulator alone: the emulator is as strict as any device.
#include "tests/executor/host_device.h"

#include <cstdlib>

#include "tests/executor/device_fixture.h"

namespace tutti::test {
namespace {

class GpuEmulator : public testing::Test {
 protected:
  ~GpuEmulator() override { device_.destroy_stream(stream_); }
  HostStream& stream() { return device_.stream_of(stream_); }

  HostDevice device_{{.memory_bytes = 1000}};
  DeviceStream stream_ = device_.make_stream();
};

TEST_F(GpuEmulator, CountsLiveObjects) {
  const HostDeviceUsage before = device_.usage();
  EXPECT_EQ(before, (HostDeviceUsage{.streams = 1}));
  std::byte* memory = device_.allocate(300).value();
  const HostMemory host = device_.allocate_host(200).value();
  auto* pages = static_cast<std::byte*>(std::aligned_alloc(4096, 4096));
  const HostMemory mapped = device_.map_host(pages, 4096).value();
  auto event = device_.make_event().value();
  EXPECT_EQ(device_.usage(), (HostDeviceUsage{.allocations = 1,
                                              .allocated_bytes = 300,
                                              .host_allocations = 1,
                                              .host_allocated_bytes = 200,
                                              .mappings = 1,
                                              .mapped_bytes = 4096,
                                              .events = 1,
                                              .streams = 1}));
  event.reset();
  device_.unmap_host(mapped);
  std::free(pages);
  device_.free_host(host);
  device_.free(memory);
  EXPECT_EQ(device_.usage(), before);
}

TEST_F(GpuEmulator, HasLimitedMemory) {
  std::byte* memory = device_.allocate(600).value();
  EXPECT_FALSE(device_.allocate(401).ok());
  std::byte* rest = device_.allocate(400).value();
  device_.free(memory);
  device_.free(rest);
  EXPECT_TRUE(device_.allocate(1000).ok());
}

TEST_F(GpuEmulator, MapsWholePagesOnly) {
  auto* pages = static_cast<std::byte*>(std::aligned_alloc(4096, 8192));
  EXPECT_FALSE(device_.map_host(pages + 64, 4096).ok());
  EXPECT_FALSE(device_.map_host(pages, 100).ok());
  const HostMemory mapped = device_.map_host(pages, 4096).value();
  EXPECT_EQ(device_.map_host(pages, 4096).value().device, mapped.device);
  device_.unmap_host(mapped);
  EXPECT_EQ(device_.usage().mappings, 1U);  // Each map_host() needs its own unmap_host().
  device_.unmap_host(mapped);
  EXPECT_EQ(device_.usage().mappings, 0U);
  std::free(pages);
}

TEST_F(GpuEmulator, EndsCapture_InThreadThatBeganIt) {
  for (const CaptureMode mode : {CaptureMode::global, CaptureMode::thread_local_only, CaptureMode::relaxed}) {
    ASSERT_TRUE(stream().begin_capture(mode).ok());
    bool ended = false;
    std::thread([&] { ended = stream().end_capture().ok(); }).join();
    EXPECT_EQ(ended, mode == CaptureMode::relaxed);
    EXPECT_EQ(stream().end_capture().ok(), mode != CaptureMode::relaxed);
  }
}

TEST_F(GpuEmulator, DoesNotCaptureNullStream) {
  EXPECT_FALSE(device_.stream_of(nullptr).begin_capture(CaptureMode::relaxed).ok());
  ASSERT_TRUE(stream().begin_capture(CaptureMode::relaxed).ok());
  const auto event = device_.make_event().value();
  ASSERT_TRUE(event->record(stream_).ok());
  EXPECT_FALSE(event->hold(nullptr).ok());
  EXPECT_FALSE(stream().end_capture().ok());
}

TEST_F(GpuEmulator, BreaksCapture_WhenSynchronized) {
  ASSERT_TRUE(stream().begin_capture(CaptureMode::relaxed).ok());
  EXPECT_FALSE(stream().synchronize().ok());
  EXPECT_FALSE(device_.capture_of(stream_).ok());
  EXPECT_FALSE(device_.copy(nullptr, nullptr, 0, stream_).ok());
  EXPECT_FALSE(stream().end_capture().ok());
  EXPECT_TRUE(stream().synchronize().ok());
}

TEST_F(GpuEmulator, KeepsCapturesSeparate) {
  const DeviceStream other = device_.make_stream();
  const auto event = device_.make_event().value();
  ASSERT_TRUE(stream().begin_capture(CaptureMode::relaxed).ok());
  ASSERT_TRUE(device_.stream_of(other).begin_capture(CaptureMode::relaxed).ok());
  ASSERT_TRUE(event->record(stream_).ok());
  EXPECT_FALSE(event->hold(other).ok());
  EXPECT_FALSE(stream().end_capture().ok());
  EXPECT_FALSE(device_.stream_of(other).end_capture().ok());
  EXPECT_FALSE(event->hold(other).ok());  // The capture of the event has ended.
  device_.destroy_stream(other);
}

class GpuEmulatorWithTwoThreadBlocks : public DeviceTest {};

INSTANTIATE_TEST_SUITE_P(Host, GpuEmulatorWithTwoThreadBlocks,
                         testing::Values(DeviceKind{"two_thread_blocks",
                                                    [] { return host_rig({.thread_blocks = 2}); }}),
                         kind_of);

// Two calls wait for each other on a device with capacity for one of them, so both time out.
TEST_P(GpuEmulatorWithTwoThreadBlocks, RunsOneCallAtATime) {
  prepare("two_shot");
  for (const Rank rank : {0U, 1U}) {
    BatchCall call = calls_->call(rank);
    call.watch.timeout_ns = kSoon;
    ASSERT_TRUE(calls_->launch({call}, rank == 0 ? a_ : b_).ok());
  }
  expect_done(a_);
  expect_done(b_);
  EXPECT_EQ(calls_->report(0).written + calls_->report(1).written, 2U);
}

class GpuEmulatorWithOneLaunch : public DeviceTest {};

INSTANTIATE_TEST_SUITE_P(Host, GpuEmulatorWithOneLaunch,
                         testing::Values(DeviceKind{"one_launch",
                                                    [] { return host_rig({.sharing = ComputeSharing::none}); }}),
                         kind_of);

// Launches run one at a time despite free capacity, as on a GPU that processes share without MPS.
TEST_P(GpuEmulatorWithOneLaunch, RunsOneLaunchAtATime) {
  prepare("two_shot");
  for (const Rank rank : {0U, 1U}) {
    BatchCall call = calls_->call(rank);
    call.watch.timeout_ns = kSoon;
    ASSERT_TRUE(calls_->launch({call}, rank == 0 ? a_ : b_).ok());
  }
  expect_done(a_);
  expect_done(b_);
  EXPECT_NE(calls_->report(0).written + calls_->report(1).written, 0U);
}

class GpuEmulatorTest : public DeviceTest {};

INSTANTIATE_TEST_SUITE_P(Host, GpuEmulatorTest, testing::Values(DeviceKind{"host", [] { return host_rig(); }}),
                         kind_of);

// free() waits for all work of the device, as on a GPU, where a premature free would hang.
TEST_P(GpuEmulatorTest, FreesAfterAllWork) {
  prepare("two_shot");
  ASSERT_TRUE(calls_->launch({calls_->call(0)}, a_).ok());
  const BatchCall one = calls_->call(1);
  const auto end = event();
  ASSERT_TRUE(end->record(a_).ok());
  std::byte* memory = device().allocate(1).value();
  std::atomic<bool> freed{false};
  std::thread other([&] {
    device().free(memory);
    freed = true;
  });
  EXPECT_TRUE(stays_false([&] { return freed.load(); }));
  EXPECT_TRUE(calls_->launch({one}, b_).ok());
  other.join();
  EXPECT_TRUE(end->reached().value());
  expect_done(a_);
  expect_done(b_);
}

TEST_P(GpuEmulatorTest, ReportsMemoryThatIsTooSmall) {
  prepare("two_shot");
  DeviceLaunch one{.count = 1, .thread_block_bytes = 16};
  BatchCall& call = one.batch.calls[0] = calls_->call(0);
  ASSERT_TRUE(device().launch(one, a_).ok());
  EXPECT_EQ(rig_->synchronize(a_).code(), Code::internal);
  call = calls_->in_workspace(call);
  call.workspace_bytes /= 2;
  ASSERT_TRUE(device().launch(one, a_).ok());
  EXPECT_EQ(rig_->synchronize(a_).code(), Code::internal);
  EXPECT_EQ(calls_->passed(0), 0U);
}

TEST_F(GpuEmulator, SharesMemory_FromAnyOfItsBytes) {
  std::byte* memory = device_.allocate(300).value();
  File file;
  const DeviceShare share = device_.share_of(memory + 100, 200, file).value();
  EXPECT_FALSE(share.by_file() || file);
  EXPECT_EQ(share.offset, 100U);
  memory[100] = std::byte{42};
  std::byte* opened = device_.open(share, file).value();
  EXPECT_EQ(opened[share.offset], std::byte{42});
  device_.close(opened);
  std::byte elsewhere{};
  EXPECT_FALSE(device_.share_of(memory + 100, 201, file).ok());
  EXPECT_FALSE(device_.share_of(&elsewhere, 1, file).ok());
  device_.free(memory);
}

}  // namespace
}  // namespace tutti::test
