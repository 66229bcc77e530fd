// Placement of the slots of lanes to other hosts. They are in device memory if the endpoint can access it and the
// options permit it.
#include "src/communicator/peers/remote_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/executor/thread_block/ll_words.h"
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
  // `partners`: 0 if the ranks are not on one rail, else their host has two ranks.
  explicit Far(std::unique_ptr<CarrierSource> source, const HostDeviceOptions& device = {}, Rank partners = 0)
      : budget_(budget_for({.local = partners / 2, .remote = std::max(partners, 1U), .partners = partners / 2})),
        peer_(partners == 0 ? RemotePeers::all : RemotePeers::partners),
        devices_{HostDevice(device), HostDevice(device)},
        ends_(std::move(source)) {}

  Result<std::unique_ptr<RemoteLanes>> make(int end, GpuDirect wanted, std::uint32_t context = kContext) {
    const std::shared_ptr<Device> device(&devices_[end], [](Device*) {});
    return RemoteLanes::make(device, *ends_.ends[end], {context, budget_, peer_, wanted});
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
    const LaneSpec spec = message_spec(0, 1, 0, budget_.slots_between_hosts(peer_));
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
  // The same by LL, whose words the reader takes before the connection reports the message.
  void expect_words_carried(RemoteLanes& from, RemoteLanes& to) {
    const LaneSpec spec = spec_of({.peer = 1}, 0, Protocol::ll, Slots::max, budget_.slots);
    LaneState writing = {.view = from.lane(spec, LaneEnd::writer).value().forward};
    LaneState reading = {.view = to.lane(spec, LaneEnd::reader).value().forward};
    const ThreadGroup alone = {0, 1};
    for (std::uint64_t number = 0; number < 3 * HalfLane::kSlots; ++number) {
      const Signature signature = {0x123456 + 7 * static_cast<std::uint32_t>(number)};
      const std::size_t lengths[] = {0, 8, 1000, ll_words_capacity(budget_.slots.ll)};
      const std::vector<std::byte> message = message_of(number, lengths[number % 4]);
      ends_.until([&] { return slot_free(writing); });
      const std::uint64_t flag = word_flag(writing, signature);
      ll_words_send(slot_of(writing.view, writing.next), flag, message.data(), message.size(), alone);
      count_ll_words(writing, signature, message.size());
      std::vector<std::byte> received(message.size());
      Progress progress = Progress::waiting;
      const auto await = [&](auto&& poll) {
        ends_.until([&] { return (progress = poll()) != Progress::waiting; });
        return progress;
      };
      ll_words_receive(slot_of(reading.view, reading.next), word_flag(reading, signature), received.data(),
                       received.size(), alone, await);
      ASSERT_EQ(progress, Progress::done);
      ASSERT_EQ(received, message) << number;
      take(reading);
    }
    ends_.until([&] { return ends_.drained(0); });
  }
  void end_connections() {
    for (auto& end : ends_.ends) end.reset();
  }

 private:
  const LaneBudget budget_;
  const RemotePeers peer_;
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

TEST(RemoteLanes, HoldLl_OnDevice) {
  for (const Fault fault : {Fault::none, Fault::reports_late, Fault::halves_late}) {
    Far remote(memory(fault), {}, 2);
    const auto one = remote.made(0, GpuDirect::on), other = remote.made(1, GpuDirect::on);
    ASSERT_TRUE(one->holds_ll() && other->holds_ll());
    remote.expect_words_carried(*one, *other);
    remote.expect_carried(*one, *other);
  }
}

// Both directions, in any order.
TEST(RemoteLanes, HoldAllLanesOfBudget) {
  Far remote(memory(), {}, 2);
  const auto lanes = remote.made(0, GpuDirect::on);
  const LaneBudget& budget = remote.budget();
  const auto open = [&](Protocol protocol, Rank writer, std::uint32_t channel, std::uint32_t tag) {
    LaneSpec spec = spec_of({.peer = 1, .tag = static_cast<std::uint16_t>(tag)}, 0, protocol, Slots::max, budget.slots);
    if (writer == 1) std::swap(spec.writer, spec.reader);
    spec.channel = static_cast<std::uint16_t>(channel);
    return lanes->lane(spec, writer == 0 ? LaneEnd::writer : LaneEnd::reader).ok();
  };
  for (const Rank writer : {0U, 1U}) {
    for (std::uint32_t channel = 0; channel < budget.remote_ll_channels; ++channel)
      EXPECT_TRUE(open(Protocol::ll, writer, channel, 0)) << channel;
    for (std::uint32_t channel = 0; channel < budget.fewer_peers.partners; ++channel)
      for (std::uint32_t tag = 0; tag < kMaxLaneTags; ++tag)
        EXPECT_TRUE(open(Protocol::simple, writer, channel, tag)) << channel;
    for (std::uint32_t channel = 0; channel < kMaxMessageChannels; ++channel)
      EXPECT_TRUE(open(Protocol::simple, writer, kMessageChannel + channel, 0)) << channel;
  }
  EXPECT_GT(budget.remote_ll_channels, 0U);
  EXPECT_FALSE(open(Protocol::ll, 0, 100, 0)) << "there is no more memory";
}

TEST(RemoteLanes, HoldNoLl_InHostMemory) {
  Far remote(memory(), {}, 2);
  const auto lanes = remote.made(0, GpuDirect::off);
  EXPECT_FALSE(lanes->holds_ll());
  const LaneSpec spec = spec_of({.peer = 1}, 0, Protocol::ll, Slots::max, remote.budget().slots);
  EXPECT_FALSE(lanes->lane(spec, LaneEnd::writer).ok());
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
