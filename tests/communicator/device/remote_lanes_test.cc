// Placement of the slots of lanes to other hosts. They are in device memory if the endpoint can access it and the
// options permit it.
#include "src/communicator/peers/remote_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/executor/host_device.h"
#include "tests/transports/ends.h"
#include "tests/transports/memory_carrier.h"

namespace tutti::test {
namespace {

constexpr std::uint32_t kContext = 7;

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

// Two connected ranks, each with its own device.
class Far {
 public:
  explicit Far(std::unique_ptr<CarrierSource> source, const HostDeviceOptions& device = {})
      : devices_{HostDevice(device), HostDevice(device)}, ends_(std::move(source)) {}

  Result<std::unique_ptr<RemoteLanes>> make(int end, GpuDirect wanted, std::uint32_t context = kContext) {
    const std::shared_ptr<Device> device(&devices_[end], [](Device*) {});
    return RemoteLanes::make(device, *ends_.ends[end], {context, budget_, RemotePeers::all, wanted});
  }
  std::unique_ptr<RemoteLanes> made(int end, GpuDirect wanted) {
    auto made = make(end, wanted);
    EXPECT_TRUE(made.ok());
    return std::move(made).value();
  }
  std::size_t taken(int end) const { return devices_[end].usage().allocated_bytes; }
  const LaneBudget& budget() const { return budget_; }

  // Sends messages of several lengths from end 0 to end 1, more than there are slots. Expects that all arrive
  // unchanged.
  void expect_carried(RemoteLanes& from, RemoteLanes& to) {
    const LaneSpec spec = message_spec(0, 1, 0, budget_.slots_between_hosts(RemotePeers::all));
    LaneState writing = {.view = from.lane(spec, LaneEnd::writer).value().forward};
    LaneState reading = {.view = to.lane(spec, LaneEnd::reader).value().forward};
    for (std::uint64_t number = 0; number < 3 * HalfLane::kSlots; ++number) {
      const std::size_t lengths[] = {0, 8, 5000, budget_.slots.simple};
      const std::vector<std::byte> message = message_of(number, lengths[number % 4]);
      ends_.until([&] { return slot_free(writing); });
      post(writing, message);
      ends_.until([&] { return simple_arrived(reading); });
      ASSERT_TRUE(next_is(reading, message)) << number;
    }
    ends_.until([&] { return ends_.drained(0); });
  }
  void end_connections() {
    for (auto& end : ends_.ends) end.reset();
  }

 private:
  LaneBudget budget_ = budget_for({.local = 0, .remote = 1});
  HostDevice devices_[2];
  Connections ends_;
};

std::unique_ptr<CarrierSource> memory(Fault fault = Fault::none) {
  return std::make_unique<MemorySource>(fault, fault);
}

TEST(RemoteLanes, HaveSlotsOnDevice_WhenCarrierReachesIt) {
  Far remote(memory());
  const auto one = remote.made(0, GpuDirect::automatic), other = remote.made(1, GpuDirect::on);
  for (const int end : {0, 1}) EXPECT_GE(remote.taken(end), 2 * remote.budget().remote_slots_bytes(RemotePeers::all));
  EXPECT_EQ(one->how(), "memory");
  remote.expect_carried(*one, *other);
}

TEST(RemoteLanes, NeedNotAgreeOnPlacementOfSlots) {
  for (const bool first : {true, false}) {
    Far remote(memory());
    const auto one = remote.made(0, first ? GpuDirect::on : GpuDirect::off);
    const auto other = remote.made(1, first ? GpuDirect::off : GpuDirect::on);
    EXPECT_EQ(remote.taken(0) == 0, !first);
    EXPECT_EQ(remote.taken(1) == 0, first);
    EXPECT_TRUE(says((first ? *other : *one).how(), "TUTTI_GPUDIRECT is off"));
    remote.expect_carried(*one, *other);
  }
}

TEST(RemoteLanes, UseHostMemory_WhenCarrierDoesNotReachDevice) {
  for (const bool carried : {true, false}) {
    Far remote(carried ? memory(Fault::refuse_reach) : nullptr);
    const std::string why = carried ? "memory does not reach memory of threads of the host" : "tcp copies";
    const auto one = remote.made(0, GpuDirect::automatic), other = remote.made(1, GpuDirect::automatic);
    EXPECT_TRUE(says(one->how(), "memory of the host") && says(one->how(), why)) << one->how();
    EXPECT_EQ(remote.taken(0), 0U);
    remote.expect_carried(*one, *other);
    auto insisting = remote.make(0, GpuDirect::on, kContext + 2);
    ASSERT_FALSE(insisting.ok());
    const Status refused = std::move(insisting).status();
    EXPECT_EQ(refused.code(), Code::unsupported);
    EXPECT_TRUE(says(refused.message(), "TUTTI_GPUDIRECT is on") && says(refused.message(), why)) << refused.message();
  }
}

// Destroys the lanes of one end only. Their device memory must stay allocated, since the other end may write to it.
TEST(RemoteLanes, KeepDeviceMemory_UntilBothEndsClose) {
  Far remote(memory());
  auto one = remote.made(0, GpuDirect::on), other = remote.made(1, GpuDirect::on);
  remote.expect_carried(*one, *other);
  other.reset();
  EXPECT_GT(remote.taken(1), 0U);
  one.reset();
  remote.end_connections();
  for (const int end : {0, 1}) EXPECT_EQ(remote.taken(end), 0U);
}

// Lanes of each endpoint that can access memory of the GPU emulator.
class RemoteLanesWith : public testing::TestWithParam<Tested> {};

TEST_P(RemoteLanesWith, CarryFromDeviceToDevice) {
  for (const bool in_order : {true, false}) {
    auto source = GetParam().open();
    if (!source.ok()) GTEST_SKIP() << std::move(source).status().message();
    Far remote(std::move(source).value(), {.orders_writes = in_order});
    auto one = remote.make(0, GpuDirect::on), other = remote.make(1, GpuDirect::on);
    if (!in_order && std::string(GetParam().name) == "ucx") {
      EXPECT_TRUE(!one.ok() && says(std::move(one).status().message(), "UCX cannot read data back"));
      continue;
    }
    if (std::string(GetParam().name).starts_with("net_plugin")) {
      EXPECT_FALSE(one.ok()) << "network plugins move host memory only";
      continue;
    }
    ASSERT_TRUE(one.ok() && other.ok());
    remote.expect_carried(*one.value(), *other.value());
  }
}

std::vector<Tested> endpoints_with_device_access() {
  std::vector<Tested> all = connections_tested();
  std::erase_if(all, [](const Tested& each) { return std::string(each.name).ends_with("tcp"); });
  return all;
}

INSTANTIATE_TEST_SUITE_P(, RemoteLanesWith, testing::ValuesIn(endpoints_with_device_access()),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace tutti::test
