// Lanes in host memory, for devices without peer access or with peer access disabled.
#include <sys/mman.h>

#include <mutex>

#include "src/base/log.h"
#include "src/communicator/peers/lane_placement.h"
#include "tests/communicator/device/device_processes.h"
#include "tests/communicator/device/islands.h"

namespace tutti::test {
namespace {

constexpr std::uint64_t kNone = ~std::uint64_t{0};

std::vector<HostDeviceOptions> alone(std::size_t devices) {
  return std::vector<HostDeviceOptions>(devices, HostDeviceOptions{.unreachable = kNone});
}

// Returns whether a device maps more than the boards of its ranks, that is, lanes in host memory.
bool maps_lanes(const HostDeviceUsage& usage, Rank ranks) {
  return usage.mapped_bytes > std::size_t{ranks} * (1 << 16) + (1 << 20);
}

std::string run_all(DeviceRanks& own, Rank first, Rank ranks) {
  std::string said = run_collectives(own, first, ranks);
  for (const std::uint64_t count : {1U, 300000U}) {
    if (said == "right") said = run_messages(own, first, ranks, count);
  }
  return said;
}

TEST(HostMemoryLanes, ConnectDevices_WithoutPeerAccess) {
  constexpr Rank kRanks = 3;
  Islands islands(alone(kRanks), 1);
  for (Rank i = 0; i < kRanks; ++i) EXPECT_TRUE(maps_lanes(islands.usage(i), 1));
  islands.expect_right([](DeviceRanks& own, Rank first) { return run_all(own, first, kRanks); });
  islands.end_ranks();
  for (Rank i = 0; i < kRanks; ++i) EXPECT_EQ(islands.usage(i).mappings, 0U);
}

// Two ranks share each of three devices. Device 0 can access device 1; all other pairs use host memory.
TEST(HostMemoryLanes, WorkBesideDeviceLanes) {
  std::vector<HostDeviceOptions> devices = alone(3);
  devices[0].unreachable = 1U << 2;
  Islands islands(devices, 2);
  islands.expect_right([](DeviceRanks& own, Rank first) { return run_all(own, first, 6); });
}

TEST(HostMemoryLanes, WorkBesideDeviceLanes_OfTimeSlicedRanks) {
  std::vector<HostDeviceOptions> devices = alone(2);
  for (HostDeviceOptions& device : devices) device.sharing = ComputeSharing::none;
  Islands islands(devices, 2);
  EXPECT_TRUE(islands[0].backend(0).peers().time_sliced() && maps_lanes(islands.usage(0), 2));
  islands.expect_right([](DeviceRanks& own, Rank first) { return run_all(own, first, 4); });
}

TEST(HostMemoryLanes, AreUnused_WhenAllDevicesHavePeerAccess) {
  Islands islands(std::vector<HostDeviceOptions>(2), 1);
  EXPECT_FALSE(maps_lanes(islands.usage(0), 1));
  islands.expect_right([](DeviceRanks& own, Rank first) { return run_all(own, first, 2); });
}

TEST(HostMemoryLanes, ConnectDevices_OfDifferentCpus) {
  const HostDeviceOptions remote = {.distance = {.level = P2pLevel::sys, .known = true}};
  Islands islands({remote, remote}, 1);
  EXPECT_TRUE(maps_lanes(islands.usage(0), 1));
  EXPECT_TRUE(maps_lanes(islands.usage(1), 1));
  islands.expect_right([](DeviceRanks& own, Rank first) { return run_collectives(own, first, 2); });
}

// Allocating memory may wait for kernels of peers, which may wait for the rank that allocates.
TEST(DeviceLanes, AreAllocated_WhenCommunicatorIsCreated) {
  constexpr Rank kRanks = 4;
  CommunicatorOptions options;
  options.algorithm = "two_shot";
  Islands islands(std::vector<HostDeviceOptions>(kRanks), 1, options);
  islands.expect_right([](DeviceRanks& own, Rank first) -> std::string {
    const std::size_t before = own.backend(0).device_bytes();
    for (const std::uint64_t count : {3U, 3'000'000U}) {
      const Problem problem{.collective = Collective::all_reduce, .ranks = kRanks, .groups = {}};
      const std::string error = run_collective(own, first, {problem, count, 1});
      if (!error.empty()) return error;
    }
    EXPECT_EQ(own.backend(0).device_bytes(), before);
    return "right";
  });
}

TEST(HostMemoryLanes, RejectLl) {
  CommunicatorOptions options;
  options.protocol = "LL";
  Islands islands(alone(2), 1, options);
  islands.expect_right([](DeviceRanks& own, Rank) -> std::string {
    auto* buffer = own.take<float>(10, 1);
    const DeviceCall call = own.call(0, call_of(Collective::all_reduce, DataType::float32, 10, buffer, buffer));
    const std::string reported = enqueue({&call, 1}).message();
    return reported.find("protocol 'LL' does not work through host memory") != std::string::npos ? "right" : reported;
  });
}

// Returns the error of an all-reduce with LL128 between two devices at this distance, or "right".
std::string error_of_ll128(const DeviceDistance& distance, bool by_nccls_variable = false) {
  CommunicatorOptions options;
  options.protocol = "LL128";
  options.protocol_is_from_nccl = by_nccls_variable;
  const HostDeviceOptions device = {.distance = distance};
  Islands islands({device, device}, 1, options);
  std::string first;
  islands.expect_right([&](DeviceRanks& own, Rank rank) -> std::string {
    auto* buffer = own.take<float>(10, 1);
    const DeviceCall call = own.call(0, call_of(Collective::all_reduce, DataType::float32, 10, buffer, buffer));
    const std::string error = enqueue({&call, 1}).message();
    own.synchronize();
    const bool right = error.empty() && buffer[9] == 2;
    if (rank == 0) first = right ? "right" : error;
    return "right";
  });
  return first;
}

TEST(Ll128, NeedsNvlink) {
  const DeviceDistance nvlink = {.level = P2pLevel::nvl, .links = 18, .known = true};
  const DeviceDistance pcie = {.level = P2pLevel::pix, .known = true};
  EXPECT_EQ(error_of_ll128(nvlink), "right");
  for (const DeviceDistance& distance : {pcie, DeviceDistance{}}) {
    const std::string error = error_of_ll128(distance);
    EXPECT_NE(error.find("protocol 'LL128' needs NVLink between all ranks on different GPUs"), std::string::npos)
        << error;
  }
  EXPECT_EQ(error_of_ll128(pcie, true), "right") << "another protocol takes its place";
}

class HostMemoryLanesOfProcesses : public testing::Test {
 protected:
  static DeviceProcessGroup::MakeRig rig(std::uint32_t ordinal, std::uint64_t unreachable) {
    return [=] { return host_rig({.ordinal = ordinal, .unreachable = unreachable}); };
  }
  DeviceProcessGroup processes_;
};

TEST_F(HostMemoryLanesOfProcesses, ConnectProcesses_WithoutSharedDeviceMemory) {
  constexpr Rank kRanks = 3;
  const auto work = [](DeviceRanks& own, Rank first) { return run_all(own, first, kRanks); };
  for (Rank rank = 0; rank < kRanks; ++rank) processes_.start(rig(rank, kNone), rank, 1, kRanks, work);
  processes_.expect_reports("right");
}

// Three ranks share a device in time slices, and cannot open each other's memory.
TEST_F(HostMemoryLanesOfProcesses, ConnectTimeSlicedProcesses) {
  constexpr Rank kRanks = 3;
  const File launch_lock(::memfd_create("tutti-time-slices", MFD_CLOEXEC));
  const auto time_sliced = [&] {
    return host_rig({.unreachable = kNone, .sharing = ComputeSharing::none, .launch_lock = launch_lock.get()});
  };
  const auto work = [](DeviceRanks& own, Rank first) {
    return own.backend(0).peers().time_sliced() ? run_all(own, first, kRanks) : "not time-sliced";
  };
  for (Rank rank = 0; rank < kRanks; ++rank) processes_.start(time_sliced, rank, 1, kRanks, work);
  processes_.expect_reports("right");
}

// Three processes, the first with two ranks. Process 0 can open the memory of all devices, process 1 that of process 0,
// and process 2 none.
TEST_F(HostMemoryLanesOfProcesses, WorkBesideSharedDeviceMemory) {
  const auto work = [](DeviceRanks& own, Rank first) { return run_all(own, first, 4); };
  processes_.start(rig(0, 0), 0, 2, 4, work);
  processes_.start(rig(1, 1U << 2), 2, 1, 4, work);
  processes_.start(rig(2, kNone), 3, 1, 4, work);
  processes_.expect_reports("right");
}

TEST_F(HostMemoryLanesOfProcesses, ConnectSubCommunicators) {
  const auto work = [](DeviceRanks& own, Rank rank) -> std::string {
    auto part = own[0].split(static_cast<int>(rank % 2), 0, own[0].options());
    if (!part.ok()) return std::move(part).status().message();
    return run_sum_in(own, *part.value(), 2);
  };
  for (Rank rank = 0; rank < 4; ++rank) processes_.start(rig(rank, kNone), rank, 1, 4, work);
  processes_.expect_reports("right");
}

TEST(LanePlacement, IsDescribedInOneLine) {
  EXPECT_EQ(describe_routes({"near", "", "far", "far", "near"}, 1),
            "to rank 0: near; to ranks 2-3: far; to rank 4: near");
  EXPECT_EQ(describe({.level = P2pLevel::nvl, .links = 18, .known = true}), "NVLink x18");
}

TEST(LanePlacement, UsesPeerAccess_UpToConfiguredLevel) {
  const DeviceDistance bridge = {.level = P2pLevel::phb, .known = true};
  const DeviceDistance linked = {.level = P2pLevel::nvl, .links = 4, .known = true};
  EXPECT_TRUE(p2p_wanted(bridge, P2pLevel::phb));
  EXPECT_TRUE(p2p_wanted(bridge, P2pLevel::sys));
  EXPECT_FALSE(p2p_wanted(bridge, P2pLevel::pxb));
  EXPECT_TRUE(p2p_wanted(linked, P2pLevel::nvl));
  EXPECT_FALSE(p2p_wanted(linked, P2pLevel::loc));
  EXPECT_FALSE(p2p_wanted({.level = P2pLevel::loc, .known = true}, P2pLevel::loc));
}

// Thread blocks of several ranks wait for each other on one device, so a launch of them must not become resident in
// part. A rank with a device of its own needs no such launch.
TEST(Launches, AreTogether_OnlyOnSharedDevices) {
  for (const Rank ranks_each : {1U, 2U}) {
    Islands islands(std::vector<HostDeviceOptions>(2), ranks_each);
    islands.expect_right([=](DeviceRanks& own, Rank first) {
      const std::string text = run_messages(own, first, 2 * ranks_each, 100);
      const auto& device = dynamic_cast<HostDevice&>(own.rig().device());
      EXPECT_GT(device.launches_together() + device.plain_launches(), 0U);
      EXPECT_EQ(device.launches_together() > 0, ranks_each > 1);
      return text;
    });
  }
}

std::mutex lines_mutex;
std::string lines;

TEST(LanePlacement, IsLogged) {
  set_log_level(LogLevel::info);
  set_log_sink([](std::string_view line) {
    const std::lock_guard lock(lines_mutex);
    lines += line;
  });
  std::vector<HostDeviceOptions> devices(2);
  devices[0].distance = {.level = P2pLevel::nvl, .links = 18, .known = true};
  devices[1].unreachable = 1;
  Islands islands(devices, 1);
  set_log_sink(nullptr);
  set_log_level(LogLevel::warn);
  EXPECT_NE(lines.find("to rank 1: NVLink x18\n"), std::string::npos) << lines;
  EXPECT_NE(lines.find("to rank 0: host memory ("), std::string::npos) << lines;
}

}  // namespace
}  // namespace tutti::test
