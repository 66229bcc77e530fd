// Lanes along rails: pairs of ranks that hierarchical plans connect have more lanes than others.
#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "algorithms/catalogue.h"
#include "src/communicator/peers/lane_budget.h"
#include "src/communicator/planning/rails.h"
#include "tests/communicator/device/device_processes.h"
#include "transports/half_lane.h"
#include "transports/tcp/lane_table.h"

namespace tutti::test {
namespace {

RankMapping hosts_of(Rank hosts, Rank size) { return {.groups = {std::vector<Rank>(hosts, size)}, .order = {}}; }

using TagsByPair = std::map<std::pair<Rank, Rank>, std::set<std::uint16_t>>;

// Adds the tags of lanes as they are on devices, unless the plans need too many.
void add_tags(std::vector<Plan> plans, TagsByPair& tags) {
  if (tags_of(plans) > kMaxLaneTags) return;
  for (Plan& plan : plans) {
    renumber_tags(plan);
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
      for (const Operand& target : plan.steps[i].targets)
        if (target.space == Space::lane) tags[{plan.steps.self(), target.peer}].insert(target.tag);
  }
}

LaneBudget budget_of(Rank hosts, Rank size) {
  const Rails rails(hosts_of(hosts, size));
  return budget_for({.local = size - 1, .remote = (hosts - 1) * size, .rails = rails.peers()});
}

TEST(Rails, ConnectPositions) {
  const Rails few(hosts_of(3, 4));
  EXPECT_EQ(few.peers(), 2U);
  EXPECT_TRUE(few.connect(1, 5));
  EXPECT_TRUE(few.connect(9, 1));
  EXPECT_FALSE(few.connect(1, 6));
  RankMapping reversed = hosts_of(2, 2);
  reversed.order = {0, 1, 3, 2};
  EXPECT_TRUE(Rails(reversed).connect(0, 3));
  EXPECT_FALSE(Rails(reversed).connect(0, 2));
}

// Hierarchical sums of many hosts exchange data with few of them.
TEST(Rails, GrowSlowlyWithHosts) {
  EXPECT_EQ(Rails(hosts_of(4, 8)).peers(), 3U);
  EXPECT_LE(Rails(hosts_of(8, 8)).peers(), 5U);
  EXPECT_LE(Rails(hosts_of(64, 8)).peers(), 8U);
  EXPECT_LE(Rails(hosts_of(500, 2)).peers(), 2 * 9U + 2);
}

TEST(Rails, AreNone_WithoutEqualHosts) {
  for (const RankMapping& mapping : {RankMapping(), hosts_of(1, 8), hosts_of(8, 1), hosts_of(513, 2)}) {
    const Rails rails(mapping);
    EXPECT_EQ(rails.peers(), 0U);
    EXPECT_FALSE(rails.connect(0, 1));
  }
  EXPECT_EQ(Rails(RankMapping{.groups = {{2, 3}}, .order = {}}).peers(), 0U);
}

// Default algorithms of large calls must be on rails, so that they have many channels.
TEST(Rails, CarryHierarchicalPlans) {
  for (const Rank hosts : {2U, 3U, 4U, 5U, 8U, 12U}) {
    const RankMapping mapping = hosts_of(hosts, 4);
    const Rails rails(mapping);
    for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
      const Problem problem = {.collective = collective, .ranks = 4 * hosts, .groups = mapping.groups};
      const char* algorithm = hosts > 4 && collective != Collective::all_reduce ? "host_ring" : "hierarchical";
      EXPECT_TRUE(rails.carry(emit_plans(*find(collective, algorithm), problem), {}))
          << name(collective) << ' ' << hosts;
      const Plan last = emit_plan(*find(collective, algorithm), problem, problem.ranks - 1);
      EXPECT_TRUE(rails.carry({&last, 1}, {})) << "alone";
    }
    Problem rooted = {.collective = Collective::broadcast, .ranks = 4 * hosts, .groups = mapping.groups};
    for (rooted.root = 0; rooted.root < rooted.ranks && hosts <= 5; ++rooted.root)
      EXPECT_TRUE(rails.carry(emit_plans(*find(Collective::broadcast, "hierarchical"), rooted), {})) << rooted.root;
    const Problem flat = {.collective = Collective::all_reduce, .ranks = 4 * hosts, .groups = {}};
    EXPECT_FALSE(rails.carry(emit_plans(*find(Collective::all_reduce, "two_shot"), flat), {})) << hosts;
  }
}

// The tuner's limits for small sums rest on this.
TEST(Rails, CarryWholeSums) {
  for (const Rank hosts : {2U, 3U, 4U, 6U, 8U, 12U, 16U, 24U, 64U}) {
    const RankMapping mapping = hosts_of(hosts, 2);
    const Rails rails(mapping);
    const Problem problem = {.collective = Collective::all_reduce, .ranks = 2 * hosts, .groups = mapping.groups};
    const auto carries = [&](const char* algorithm) {
      return rails.carry(emit_plans(*find(Collective::all_reduce, algorithm), problem), {});
    };
    EXPECT_TRUE(carries("host_ring")) << hosts;
    EXPECT_EQ(carries("host_one_shot"), hosts <= 4) << hosts;
    EXPECT_EQ(carries("host_doubling"), hosts <= 4 || std::has_single_bit(hosts)) << hosts;
  }
}

TEST(LaneBudget, HasManyChannels_AlongRails) {
  EXPECT_EQ(budget_of(2, 8).rail_channels, 24U);
  EXPECT_EQ(budget_of(4, 8).rail_channels, 24U);
  EXPECT_GE(budget_of(8, 8).rail_channels, 16U);
  EXPECT_GE(budget_of(64, 8).rail_channels, 12U);
  EXPECT_EQ(budget_for({.local = 7, .remote = 8}).rail_channels, 0U);
  for (const Rank hosts : {2U, 3U, 4U, 8U, 12U, 64U, 200U}) {
    const LaneBudget budget = budget_of(hosts, 8);
    const Rank rails = Rails(hosts_of(hosts, 8)).peers();
    const std::size_t more = budget.remote_bytes(true) - budget.remote_bytes(false);
    EXPECT_GE(budget.rail_channels, budget.remote_channels) << hosts;
    EXPECT_LE(rails * 2 * more, std::size_t{192} << 20) << hosts;
  }
}

// Opens all half lanes of a rail. Another half lane must be refused.
TEST(LaneBudget, HoldsAllHalfLanesAlongRails) {
  const LaneBudget budget = budget_of(3, 2);
  ASSERT_GT(budget.rail_channels, budget.remote_channels);
  LaneTable table([](std::size_t) -> Result<LaneMemory> { return internal_error("not lent"); });
  const std::size_t bytes = 2 * budget.remote_bytes(true);
  table.attach_memory(1, {.memory = HalfLane::allocate_shared(bytes).value(), .bytes = bytes, .slots = nullptr});
  const auto open = [&](bool writes, std::uint32_t channel, std::uint16_t tag) {
    LaneSpec spec = message_spec(writes ? 0 : 1, writes ? 1 : 0, tag, budget.slots);
    spec.channel = static_cast<std::uint16_t>(channel);
    return table.half(1, spec, writes ? LaneEnd::writer : LaneEnd::reader).ok();
  };
  for (const bool writes : {true, false}) {
    for (std::uint32_t channel = 0; channel < budget.rail_channels; ++channel)
      for (std::uint16_t tag = 0; tag < kMaxLaneTags; ++tag) ASSERT_TRUE(open(writes, channel, tag)) << channel;
    for (std::uint32_t channel = 0; channel < std::min(budget.remote_channels, kMaxMessageChannels); ++channel)
      ASSERT_TRUE(open(writes, kMessageChannel + channel, 0));
  }
  EXPECT_FALSE(open(true, 0, 77));
}

// Lanes between hosts have room for kMaxLaneTags tags of all plans together.
TEST(LaneBudget, CoversTagsOfAllPlans) {
  for (const std::vector<Rank>& hosts : {std::vector<Rank>{2, 2}, {3, 1}, {4, 4, 4}, {2, 2, 2, 2, 2}, {3, 2}}) {
    TagsByPair tags;
    const Rank ranks = std::accumulate(hosts.begin(), hosts.end(), Rank{0});
    for (std::uint32_t kind = 0; kind < kCollectives; ++kind) {
      Problem problem = {.collective = static_cast<Collective>(kind), .ranks = ranks, .groups = {}};
      for (const Algorithm* algorithm : catalogue(problem.collective)) {
        for (const bool knows_hosts : {false, true}) {
          problem.groups = knows_hosts ? std::vector<std::vector<Rank>>{hosts} : std::vector<std::vector<Rank>>();
          for (problem.root = 0; problem.root < (has_root(problem.collective) ? ranks : 1); ++problem.root)
            if (algorithm->supports(problem)) add_tags(emit_plans(*algorithm, problem), tags);
        }
      }
    }
    ASSERT_FALSE(tags.empty());
    for (const auto& [pair, used] : tags) EXPECT_LE(used.size(), kMaxLaneTags) << pair.first << ' ' << pair.second;
  }
}

}  // namespace
}  // namespace tutti::test
