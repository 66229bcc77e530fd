// Memory for lanes, which is scarce with many ranks in several processes.
#include <map>
#include <numeric>
#include <set>

#include "algorithms/catalogue.h"
#include "src/communicator/peers/pair_lanes.h"
#include "tests/base/case_sampling.h"
#include "tests/communicator/device/device_processes.h"
#include "tests/communicator/device/islands.h"

namespace tutti::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

LaneBudget budget_on_one_host(Rank ranks) { return budget_for({.local = ranks - 1}); }

TEST(LaneBudget, GivesEachRankEqualAndBoundedMemory) {
  for (Rank ranks = 2; ranks <= 200; ++ranks) {
    const LaneBudget budget = budget_on_one_host(ranks);
    EXPECT_LE(budget.bytes * (ranks - 1), 129 * kMiB) << ranks;
    EXPECT_GE(budget.channels, 1U) << ranks;
    EXPECT_EQ(budget.bytes % 4096, 0U) << ranks;
  }
  EXPECT_EQ(budget_on_one_host(8).channels, 24U);
  EXPECT_GE(budget_on_one_host(16).channels, 8U);
  EXPECT_GE(budget_on_one_host(32).channels, 3U);
}

// Frameworks make many communicators on a GPU.
TEST(LaneBudget, IsSmaller_ForFurtherCommunicators) {
  for (Rank ranks = 2; ranks <= 200; ++ranks) {
    const LanePeers peers = {.local = ranks - 1};
    const LaneBudget first = budget_for(peers), further = budget_for(peers, kPageBytes, LaneLimit::small);
    EXPECT_LE(further.bytes * (ranks - 1), 49 * kMiB) << ranks;
    EXPECT_LE(further.bytes, first.bytes) << ranks;
    const LaneBudget in_host = budget_for(peers, kPageBytes, LaneLimit::in_host_memory);
    EXPECT_LE(in_host.bytes, further.bytes) << ranks;
    EXPECT_LE(in_host.channels, 8U) << ranks;
    EXPECT_EQ(first.ring.bytes(), (ranks <= 8 ? 96 : 24) * kMiB) << ranks;
    EXPECT_EQ(further.ring.bytes(), 18 * kMiB) << ranks;
    EXPECT_EQ(in_host.ring.bytes(), 0U) << ranks;
  }
  EXPECT_GE(budget_for({.local = 7}, kPageBytes, LaneLimit::small).channels, 6U);
}

// Long messages amortize the time of a step, but must not leave lanes with fewer channels.
TEST(LaneBudget, HasLargeSlots_WithFewPeers) {
  const std::map<Rank, std::uint32_t> slots = {{2, 256}, {3, 256}, {4, 128}, {5, 128}, {6, 64}, {8, 64}};
  for (const auto& [ranks, kib] : slots) {
    const LaneBudget budget = budget_on_one_host(ranks);
    EXPECT_EQ(budget.slots.simple, kib * 1024) << ranks;
    EXPECT_EQ(budget.channels, 24U) << ranks;
    EXPECT_LE(budget_for({.local = ranks - 1, .remote = ranks}).slots.simple, 64U * 1024) << ranks;
    for (const LaneLimit limit : {LaneLimit::small, LaneLimit::in_host_memory})
      EXPECT_LE(budget_for({.local = ranks - 1}, kPageBytes, limit).slots.simple, 64U * 1024) << ranks;
  }
}

// Devices map the lanes of each pair of ranks separately, in whole pages. The page size must not change the slots and
// channels, on which all ranks agree.
TEST(LaneBudget, IsAMultipleOfPageSize) {
  for (Rank local = 1; local < 64; ++local) {
    const LaneBudget small = budget_for({local, 8}, 4096), large = budget_for({local, 8}, 64 * 1024);
    EXPECT_EQ(large.bytes % (64 * 1024), 0U) << local;
    EXPECT_EQ(large.bytes, round_up(small.bytes, 64 * 1024)) << local;
    EXPECT_EQ(large.channels, small.channels) << local;
    EXPECT_EQ(large.slots.simple, small.slots.simple) << local;
  }
}

TEST(LaneBudget, CountsPeersByHost) {
  std::vector<Rank> host_of;
  for (Rank rank = 0; rank < 96; ++rank) host_of.push_back(rank / 8);
  const LanePeers even = peers_in(Hosts(host_of), Rails());
  EXPECT_EQ(even.local, 7U);
  EXPECT_EQ(even.remote, 88U);
  const LanePeers uneven = peers_in(Hosts(std::vector<Rank>{0, 1, 1, 1, 2}), Rails());
  EXPECT_EQ(uneven.local, 2U);
  EXPECT_EQ(uneven.remote, 4U);
}

// A channel between hosts has large slots at both ends.
TEST(LaneBudget, HasFewChannels_BetweenHosts) {
  for (const Rank local : {0U, 1U, 7U}) {
    const LaneBudget budget = budget_for({.local = local, .remote = local + 1});
    EXPECT_LE(budget.channels_to_all(), 8U) << local;
    EXPECT_GE(budget.channels_to_all(), 3U) << local;
    EXPECT_EQ(budget.channels, 24U) << "lanes within a host lie elsewhere";
  }
  EXPECT_LE(2 * budget_for({.local = 0, .remote = 1}).remote_bytes(RemotePeers::all), 40 * kMiB);
}

// Lanes to other hosts are in other memory than those within a host, which limits the channels.
TEST(LaneBudget, KeepsLargeSlots_WithFewHosts) {
  const LaneBudget alone = budget_for({.local = 7}), hosts = budget_for({.local = 7, .remote = 8});
  EXPECT_EQ(hosts.slots.simple, alone.slots.simple);
  EXPECT_EQ(hosts.remote_slot_bytes, alone.slots.simple);
  for (const Rank remote : {8U, 24U, 88U})
    EXPECT_LE(2 * budget_for({.local = 7, .remote = remote}).remote_bytes(RemotePeers::all) * remote, 96 * kMiB)
        << remote;
  EXPECT_GE(budget_for({.local = 7, .remote = 88}).remote_slot_bytes, 16U * 1024);
}

TEST(LaneBudget, HasNoMaximumOfRanks) {
  for (const LanePeers& peers : {LanePeers{2000, 0}, LanePeers{7, 10'000}}) {
    const LaneBudget budget = budget_for(peers);
    EXPECT_EQ(budget.channels_to_all(), 1U);
    EXPECT_EQ(peers.remote > 0 ? budget.remote_slot_bytes : budget.slots.simple, 4U * 1024);
  }
}

// Opens all lanes that plans can use, in the worst order: those of the first channels before those of more channels.
TEST(LaneBudget, HoldsAllLanesOfPlans) {
  for (Rank ranks : {2, 3, 5, 8, 12, 16, 24, 32, 64, 90, 91, 100, 200, 500}) {
    const LaneBudget budget = budget_on_one_host(ranks);
    PairLanes region(nullptr, budget.bytes);
    for (std::uint16_t channel = 0; channel < budget.channels; ++channel) {
      for (std::uint16_t tag = 0; tag < kMaxLaneTags; ++tag) {
        for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
          LaneSpec spec = spec_of({.peer = 1, .tag = tag}, 0, protocol, kLaneSlotsInHost, budget.slots);
          spec.channel = channel;
          ASSERT_TRUE(region.lane(spec).ok()) << ranks << name(protocol);
        }
        LaneSpec flag = flag_spec(0, 1, tag);
        flag.channel = channel;
        ASSERT_TRUE(region.lane(flag).ok()) << ranks;
      }
    }
    for (std::uint32_t channel = 0; channel < std::min(budget.channels, kMaxMessageChannels); ++channel) {
      LaneSpec message = message_spec(0, 1, 0, budget.slots);
      message.channel = static_cast<std::uint16_t>(kMessageChannel + channel);
      ASSERT_TRUE(region.lane(message).ok()) << ranks;
    }
  }
}

// Opens all half lanes to a rank of another host: those of collectives and of messages. Another half lane must be
// refused.
TEST(LaneBudget, HoldsAllHalfLanesToOtherHosts) {
  for (const Rank ranks : {2U, 8U, 40U, 90U, 500U}) {
    const LaneBudget budget = budget_for({.local = 1, .remote = ranks});
    LaneTable table([](std::size_t) -> Result<LaneMemory> { return internal_error("not lent"); });
    const std::size_t bytes = 2 * budget.remote_bytes(RemotePeers::all);
    table.attach_memory(1, {.memory = HalfLane::allocate_shared(bytes).value(), .bytes = bytes, .slots = nullptr});
    for (const bool writes : {true, false}) {
      const auto open = [&](std::uint32_t channel, std::uint16_t tag) {
        LaneSpec spec = message_spec(writes ? 0 : 1, writes ? 1 : 0, tag, budget.slots_between_hosts(RemotePeers::all));
        spec.channel = static_cast<std::uint16_t>(channel);
        return table.half(1, spec, writes ? LaneEnd::writer : LaneEnd::reader).ok();
      };
      for (std::uint32_t channel = 0; channel < budget.remote_channels; ++channel) {
        for (std::uint16_t tag = 0; tag < kMaxLaneTags; ++tag) ASSERT_TRUE(open(channel, tag)) << ranks;
      }
      for (std::uint32_t channel = 0; channel < std::min(budget.remote_channels, kMaxMessageChannels); ++channel)
        ASSERT_TRUE(open(kMessageChannel + channel, 0)) << ranks;
    }
    ASSERT_FALSE(
        table.half(1, message_spec(0, 1, 77, budget.slots_between_hosts(RemotePeers::all)), LaneEnd::writer).ok());
  }
}

TEST(LaneBudget, CoversTagsOfCatalogue) {
  std::uint32_t max = 0;
  for (std::uint32_t kind = 0; kind < kCollectives; ++kind) {
    for (const Algorithm* algorithm : catalogue(static_cast<Collective>(kind))) {
      for (const Rank ranks : {2U, 3U, 8U, 17U}) {
        const Problem problem{.collective = static_cast<Collective>(kind), .ranks = ranks, .groups = {}};
        if (!algorithm->supports(problem)) continue;
        const std::uint32_t tags = tags_of(emit_plans(*algorithm, problem));
        EXPECT_LE(tags, kMaxLaneTags) << algorithm->name() << ' ' << ranks;
        max = std::max(max, tags);
      }
    }
  }
  EXPECT_EQ(max, kMaxLaneTags);
}

constexpr std::size_t kMostlyUntouched = 5120 * kMiB;

std::unique_ptr<DeviceRig> wide_rig() {
  return host_rig({.thread_count = 1, .thread_blocks = 64, .memory_bytes = kMostlyUntouched, .shares_by_file = true});
}

// Runs short and long calls, which use different protocols and up to the maximum number of channels. Returns "right" or
// an error.
std::string run_long_and_short(DeviceRanks& own, Rank first, Rank ranks) {
  for (const Collective collective : {Collective::all_reduce, Collective::all_to_all, Collective::broadcast}) {
    for (const std::uint64_t count : {3U, 20000U}) {
      const Problem problem{.collective = collective, .ranks = ranks, .groups = {}};
      const std::string error = run_collective(own, first, {problem, count, static_cast<std::uint32_t>(count)});
      if (!error.empty()) return error;
    }
  }
  return "right";
}

TEST(ManyRanks, ComputeCorrectResults_InSeveralProcesses) {
  constexpr Rank kRanks = 32;
  constexpr Rank kOwn = 8;
  DeviceProcessGroup processes;
  const auto work = [](DeviceRanks& own, Rank first) { return run_long_and_short(own, first, kRanks); };
  for (Rank first = 0; first < kRanks; first += kOwn) processes.start(wide_rig, first, kOwn, kRanks, work);
  processes.expect_reports("right");
}

// Returns "right", or an error unless only the first of several communicators has large lanes.
std::string make_further_communicators(DeviceRanks& own, Rank first) {
  const Communicator& whole = own[0];
  std::uint32_t few = 0;
  if (own.backend(0).device_bytes() <= kSmallLaneBytes) return "the first communicator has small lanes";
  for (int turn = 0; turn < 2; ++turn) {
    auto part = own[0].split(0, 0, whole.options());
    if (!part.ok()) return std::move(part).status().message();
    DeviceBackend& backend = *part.value()->on_device();
    if (backend.device_bytes() > kSmallLaneBytes + backend.peers().lanes().ring.bytes() + 4 * kMiB)
      return "a further communicator has large lanes";
    if (backend.peers().lanes().channels >= own.backend(0).peers().lanes().channels) return "it has as many channels";
    few = backend.peers().lanes().channels;
  }
  CommunicatorOptions options = whole.options();
  for (const std::uint32_t min_channels : {few, few + 1}) {
    options.min_channels = min_channels;
    auto part = own[0].split(0, 0, options);
    if (!part.ok()) return std::move(part).status().message();
    const LaneBudget& lanes = part.value()->on_device()->peers().lanes();
    const LaneBudget& first_lanes = own.backend(0).peers().lanes();
    const bool as_many = lanes.channels == first_lanes.channels && lanes.ring.channels == first_lanes.ring.channels;
    if (as_many != (min_channels > few))
      return "at least " + std::to_string(min_channels) + " channels have wrong lanes";
  }
  return run_long_and_short(own, first, 8);
}

// Images of calls of many ranks have several MiB.
TEST(RankDeviceMemory, ReusesRetiredMemoryOfEveryClass) {
  const auto rig = host_rig();
  RankDeviceMemory memory(std::shared_ptr<Device>(&rig->device(), [](Device*) {}));
  std::uint64_t call = 0;
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{70'000}, std::size_t{3} << 20}) {
    std::byte* const first = memory.allocate_uncleared(bytes).value();
    memory.retire(first, bytes, ++call);
    memory.done_before(call);
    EXPECT_NE(memory.allocate_uncleared(bytes).value(), first) << "the call may still read it";
    memory.done_before(call + 1);
    EXPECT_EQ(memory.allocate_uncleared(bytes).value(), first) << bytes;
  }
}

TEST(ManyRanks, HaveLargeLanesOnce_OnEachDevice) {
  if (over_network()) GTEST_SKIP() << "each rank would be on a host of its own";
  DeviceProcessGroup processes;
  for (Rank rank = 0; rank < 8; ++rank) processes.start(wide_rig, rank, 1, 8, make_further_communicators);
  processes.expect_reports("right");
}

TEST(ManyRanks, HaveFewLanes_InHostMemory) {
  if (over_network()) GTEST_SKIP() << "each rank would be on a host of its own";
  constexpr Rank kRanks = 8;
  const auto work = [](DeviceRanks& own, Rank first) -> std::string {
    const auto check = [](DeviceBackend& backend) {
      const LaneBudget& lanes = backend.peers().lanes();
      return backend.peers().through_host() && lanes.channels <= 8 && lanes.bytes * (kRanks - 1) <= kSmallLaneBytes;
    };
    if (!check(own.backend(0))) return "the first communicator has many lanes";
    if (!RankDeviceMemory::has_large_lanes(own.backend(0).device().traits().identity))
      return "further ones start large";
    auto part = own[0].split(0, 0, own[0].options());
    if (!part.ok()) return std::move(part).status().message();
    if (!check(*part.value()->on_device())) return "a further communicator has many lanes";
    return run_long_and_short(own, first, kRanks);
  };
  DeviceProcessGroup processes;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    const auto rig = [=] {
      return host_rig({.ordinal = rank, .memory_bytes = kMostlyUntouched, .unreachable = ~std::uint64_t{0}});
    };
    processes.start(rig, rank, 1, kRanks, work);
  }
  processes.expect_reports("right");
}

TEST(ManyRanks, HaveLargeLanesOnce_InOneProcess) {
  if (over_network()) GTEST_SKIP() << "each rank would be on a host of its own";
  constexpr Rank kRanks = 8;
  Islands islands(std::vector<HostDeviceOptions>(kRanks, {.memory_bytes = kMostlyUntouched}), 1);
  islands.expect_right([](DeviceRanks& own, Rank first) -> std::string {
    const std::string error = run_long_and_short(own, first, kRanks);
    if (error != "right") return error;
    if (own.backend(0).device_bytes() <= kSmallLaneBytes) return "the first communicator has small lanes";
    auto part = own[0].split(0, 0, own[0].options());
    if (!part.ok()) return std::move(part).status().message();
    const std::string sum = run_sum_in(own, *part.value(), kRanks);
    if (sum != "right") return sum;
    DeviceBackend& backend = *part.value()->on_device();
    if (backend.peers().lanes().channels >= kMaxLaneChannels) return "a further communicator has as many channels";
    if (backend.device_bytes() > kSmallLaneBytes + 8 * kMiB) return "a further communicator has large lanes";
    return "right";
  });
}

TEST(ManyRanks, Join_OnOneHost) {
  if (over_network()) GTEST_SKIP() << "each rank would be on a host of its own";
  if (kSlowMotion) GTEST_SKIP() << "takes a minute in this build; the release build runs it";
  constexpr Rank kRanks = 96;
  constexpr Rank kOwn = 24;
  const auto rig = [] {
    return host_rig(
        {.thread_count = 1, .thread_blocks = 128, .memory_bytes = kMostlyUntouched, .shares_by_file = true});
  };
  DeviceProcessGroup processes;
  const auto work = [](DeviceRanks& own, Rank first) -> std::string {
    for (const std::uint64_t count : {3U, 5000U}) {
      const Problem problem{.collective = Collective::all_reduce, .ranks = kRanks, .groups = {}};
      const std::string error = run_collective(own, first, {problem, count, 0});
      if (!error.empty()) return error;
    }
    return "right";
  };
  for (Rank first = 0; first < kRanks; first += kOwn) processes.start(rig, first, kOwn, kRanks, work);
  processes.expect_reports("right");
}

}  // namespace
}  // namespace tutti::test
