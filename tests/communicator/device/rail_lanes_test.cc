// Lanes along rails: pairs of ranks that hierarchical plans connect have more lanes than others.
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "algorithms/catalogue.h"
#include "src/communicator/peers/lane_budget.h"
#include "src/communicator/planning/rails.h"
#include "tests/base/case_sampling.h"
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
  return budget_for({.local = size - 1,
                     .remote = (hosts - 1) * size,
                     .partners = rails.partners(),
                     .others_on_rail = rails.others()});
}

TEST(Rails, ConnectPositions) {
  const Rails few(hosts_of(3, 4));
  EXPECT_EQ(few.partners(), 2U);
  EXPECT_EQ(few.others(), 0U);
  EXPECT_EQ(few.between(1, 5), RemotePeers::partners);
  EXPECT_EQ(few.between(9, 1), RemotePeers::partners);
  EXPECT_EQ(few.between(1, 6), RemotePeers::all);
  RankMapping reversed = hosts_of(2, 2);
  reversed.order = {0, 1, 3, 2};
  EXPECT_EQ(Rails(reversed).between(0, 3), RemotePeers::partners);
  EXPECT_EQ(Rails(reversed).between(0, 2), RemotePeers::all);
  const Rails many(hosts_of(8, 4));
  EXPECT_GE(many.partners() + many.others(), 7U) << "hosts differ in their numbers of partners";
  EXPECT_EQ(many.between(1, 5), RemotePeers::partners);
  EXPECT_EQ(many.between(1, 9), RemotePeers::rail);
  EXPECT_EQ(many.between(1, 14), RemotePeers::all);
}

// Lanes to partners have all tags on the channels of the rail.
TEST(Rails, LimitTagsOnlyBeyondPartners) {
  const Rails rails(hosts_of(8, 4));
  const auto peers_of = [&](std::initializer_list<Operand> lanes) {
    Plan plan{.problem = {}, .shape = {}, .steps = Steps(1), .rounds = {}};
    for (const Operand& lane : lanes) plan.steps.fold({input(0)}, {lane});
    return rails.peers_of({&plan, 1}, {});
  };
  const Operand partner = lane(5, 1, kRailTags), on_rail = lane(9, 1, 0);
  EXPECT_EQ(peers_of({partner, on_rail}), RemotePeers::rail);
  EXPECT_EQ(peers_of({on_rail, partner}), RemotePeers::rail);
  EXPECT_EQ(peers_of({lane(9, 1, kRailTags), partner}), RemotePeers::all);
}

// Rings and trees of any number of hosts connect each of them with few others.
TEST(Rails, HaveFewPartners) {
  EXPECT_EQ(Rails(hosts_of(4, 8)).partners(), 3U);
  for (const Rank hosts : {5U, 8U, 63U, 64U, 500U}) EXPECT_LE(Rails(hosts_of(hosts, 2)).partners(), 6U) << hosts;
}

TEST(Rails, AreNone_WithoutEqualHosts) {
  for (const RankMapping& mapping : {RankMapping(), hosts_of(1, 8), hosts_of(8, 1), hosts_of(513, 2)}) {
    const Rails rails(mapping);
    EXPECT_EQ(rails.partners() + rails.others(), 0U);
    EXPECT_EQ(rails.between(0, 1), RemotePeers::all);
  }
  EXPECT_EQ(Rails(RankMapping{.groups = {{2, 3}}, .order = {}}).partners(), 0U);
}

// Lanes of LL have kRailTags tags, also those to partners, and are in a memory of their own.
TEST(Rails, CarryMessagesOfLl) {
  for (const Rank hosts : {2U, 3U, 4U, 5U, 8U, 12U, 33U}) {
    const RankMapping mapping = hosts_of(hosts, 2);
    const Rails rails(mapping);
    TagsByPair tags;
    for (const auto& [collective, algorithm] : {std::pair(Collective::all_reduce, "host_one_shot"),
                                                {Collective::all_reduce, "host_doubling"},
                                                {Collective::all_gather, "hierarchical"},
                                                {Collective::reduce_scatter, "hierarchical"},
                                                {Collective::broadcast, "hierarchical"},
                                                {Collective::reduce, "hierarchical"}}) {
      const Rank max_hosts = collective == Collective::all_reduce ? ~0U : has_root(collective) ? 2 : 4;
      Problem problem = {.collective = collective, .ranks = 2 * hosts, .groups = mapping.groups};
      for (problem.root = 0; hosts <= max_hosts && problem.root < (has_root(collective) ? problem.ranks : 1);
           ++problem.root) {
        std::vector<Plan> plans = emit_plans(*find(collective, algorithm), problem);
        EXPECT_NE(rails.peers_of(plans, {}), RemotePeers::all) << algorithm << ' ' << hosts;
        add_tags(std::move(plans), tags);
      }
      for (const auto& [pair, used] : tags) {
        const bool between_hosts = pair.first / 2 != pair.second / 2;
        EXPECT_LE(between_hosts ? used.size() : 0, kRailTags) << algorithm << ' ' << hosts;
      }
    }
  }
  for (const Rank hosts : {2U, 4U, 8U, 64U}) {
    const LaneBudget budget = budget_of(hosts, 8);
    EXPECT_EQ(budget.remote_ll_channels, hosts <= 8 ? 16U : 7U) << hosts;
    EXPECT_LE(2 * (hosts - 1) * budget.remote_ll_bytes(RemotePeers::rail), 64U << 20) << hosts;
    EXPECT_EQ(budget.remote_ll_bytes(RemotePeers::all), 0U);
  }
  EXPECT_EQ(budget_of(2, 1).remote_ll_channels, 0U) << "no rails";
}

// Default algorithms of large calls must be on rails, so that they have many channels.
TEST(Rails, CarryHierarchicalPlans) {
  for (const Rank hosts : {2U, 3U, 4U, 5U, 8U, 12U}) {
    const RankMapping mapping = hosts_of(hosts, 4);
    const Rails rails(mapping);
    for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
      const Problem problem = {.collective = collective, .ranks = 4 * hosts, .groups = mapping.groups};
      const bool sums = collective == Collective::all_reduce;
      const char* algorithm = hosts <= 4 ? "hierarchical" : sums ? "host_tree" : "host_ring";
      EXPECT_EQ(rails.peers_of(emit_plans(*find(collective, algorithm), problem), {}), RemotePeers::partners)
          << name(collective) << ' ' << hosts;
      const Plan last = emit_plan(*find(collective, algorithm), problem, problem.ranks - 1);
      EXPECT_EQ(rails.peers_of({&last, 1}, {}), RemotePeers::partners) << "alone";
    }
    const Problem exchange = {.collective = Collective::all_to_all, .ranks = 4 * hosts, .groups = mapping.groups};
    EXPECT_EQ(rails.peers_of(emit_plans(*find(Collective::all_to_all, "hierarchical"), exchange), {}),
              rails.others() == 0 ? RemotePeers::partners : RemotePeers::rail);
    Problem rooted = {.collective = Collective::broadcast, .ranks = 4 * hosts, .groups = mapping.groups};
    for (rooted.root = 0; rooted.root < rooted.ranks && hosts <= 5; ++rooted.root)
      EXPECT_EQ(rails.peers_of(emit_plans(*find(Collective::broadcast, "hierarchical"), rooted), {}),
                RemotePeers::partners)
          << rooted.root;
    const Problem flat = {.collective = Collective::all_reduce, .ranks = 4 * hosts, .groups = {}};
    EXPECT_EQ(rails.peers_of(emit_plans(*find(Collective::all_reduce, "two_shot"), flat), {}), RemotePeers::all)
        << hosts;
  }
}

// The tuner's limits for small sums rest on this.
TEST(Rails, CarryWholeSums) {
  for (const Rank hosts : {2U, 3U, 4U, 6U, 8U, 12U, 16U, 24U, 64U}) {
    const RankMapping mapping = hosts_of(hosts, 2);
    const Rails rails(mapping);
    const Problem problem = {.collective = Collective::all_reduce, .ranks = 2 * hosts, .groups = mapping.groups};
    const auto peers_of = [&](const char* algorithm) {
      return rails.peers_of(emit_plans(*find(Collective::all_reduce, algorithm), problem), {});
    };
    EXPECT_EQ(peers_of("host_tree"), RemotePeers::partners) << hosts;
    EXPECT_EQ(peers_of("tree_staged"), RemotePeers::partners) << hosts;
    EXPECT_EQ(peers_of("host_one_shot"), hosts <= 4 ? RemotePeers::partners : RemotePeers::rail) << hosts;
    EXPECT_EQ(peers_of("host_doubling"), hosts <= 4 ? RemotePeers::partners : RemotePeers::rail) << hosts;
  }
}

TEST(LaneBudget, HasManyChannels_AlongRails) {
  EXPECT_EQ(budget_of(2, 8).fewer_peers.partners, 24U);
  EXPECT_EQ(budget_of(4, 8).fewer_peers.partners, 24U);
  for (const Rank hosts : {5U, 8U, 12U, 64U, 500U}) EXPECT_EQ(budget_of(hosts, 8).fewer_peers.partners, 24U) << hosts;
  EXPECT_EQ(budget_for({.local = 7, .remote = 8}).fewer_peers.partners, 0U);
  EXPECT_EQ(budget_of(4, 8).fewer_peers.rail, 0U);
  EXPECT_EQ(budget_of(8, 8).fewer_peers.rail, 24U);
  EXPECT_GE(budget_of(64, 8).fewer_peers.rail, 4U);
  EXPECT_EQ(budget_of(32, 8).rail_slot_bytes, 64U << 10);
  for (const Rank hosts : {2U, 3U, 4U, 8U, 12U, 64U, 200U}) {
    const LaneBudget budget = budget_of(hosts, 8);
    const Rails rails(hosts_of(hosts, 8));
    const auto more = [&](RemotePeers peer) {
      return 2 * (budget.remote_bytes(peer) - budget.remote_bytes(RemotePeers::all));
    };
    EXPECT_GE(budget.fewer_peers.partners, budget.remote_channels) << hosts;
    EXPECT_GE(budget.rail_slot_bytes, budget.remote_slot_bytes) << hosts;
    EXPECT_LE(rails.partners() * more(RemotePeers::partners), std::size_t{256} << 20) << hosts;
    EXPECT_LE(rails.others() * more(RemotePeers::rail), std::size_t{256} << 20) << hosts;
  }
}

// Plans along a rail send to partners, too, with lanes of one tag on each channel of the rail.
TEST(LaneBudget, HasNoMoreChannelsAlongARailThanToPartners) {
  OneOf layouts(7);
  for (Rank hosts = 5; hosts <= 512; hosts += hosts < 80 ? 1 : 27) {
    for (const Rank size : {2U, 4U, 8U, 32U, 72U}) {
      if (!layouts.takes()) continue;
      const Rails rails(hosts_of(hosts, size));
      const LanePeers peers = {.local = size - 1,
                               .remote = (hosts - 1) * size,
                               .partners = rails.partners(),
                               .others_on_rail = rails.others()};
      for (const LaneLimit limit : {LaneLimit::large, LaneLimit::small, LaneLimit::in_host_memory}) {
        const LaneBudget budget = budget_for(peers, 4096, limit);
        EXPECT_GE(budget.fewer_peers.partners, budget.fewer_peers.rail) << hosts << " hosts of " << size;
        EXPECT_GE(budget.slots.simple, budget.rail_slot_bytes);
        EXPECT_GE(budget.rail_slot_bytes, budget.remote_slot_bytes);
      }
    }
  }
}

// In racks, plans by switches have more channels along rails than lanes within the rack have.
TEST(LaneBudget, SuitsSwitchesOfManyRanks) {
  EXPECT_EQ(budget_for({.local = 71}).ring.position_bytes, 128U << 10);
  EXPECT_EQ(budget_for({.local = 71, .multicast = true}).ring.position_bytes, 512U << 10);
  LanePeers racks = {.local = 71, .remote = 72, .partners = 1};
  EXPECT_EQ(budget_for(racks).ring.channels, 0U);
  EXPECT_LE(budget_for(racks).fewer_peers.partners, budget_for(racks).channels);
  racks.multicast = true;
  EXPECT_LT(budget_for(racks).channels, 24U);
  EXPECT_EQ(budget_for(racks).fewer_peers.partners, 24U);
  EXPECT_GT(budget_for(racks).ring.channels, 0U);
  EXPECT_EQ(budget_for(racks, 4096, LaneLimit::small).ring.channels, 0U);
  EXPECT_LE(budget_for(racks, 4096, LaneLimit::small).fewer_peers.partners, budget_for(racks).channels);
}

// Opens all half lanes to a rank on the same rail. Another half lane must be refused.
TEST(LaneBudget, HoldsAllHalfLanesAlongRails) {
  for (const RemotePeers peer : {RemotePeers::partners, RemotePeers::rail}) {
    const bool partner = peer == RemotePeers::partners;
    const LaneBudget budget = partner ? budget_of(3, 2) : budget_of(64, 8);
    const std::uint32_t channels = partner ? budget.fewer_peers.partners : budget.fewer_peers.rail;
    ASSERT_GT(channels, budget.remote_channels);
    LaneTable table([](std::size_t) -> Result<LaneMemory> { return internal_error("not lent"); });
    const std::size_t bytes = 2 * budget.remote_bytes(peer);
    table.attach_memory(1, {.memory = HalfLane::allocate_shared(bytes).value(), .bytes = bytes, .slots = nullptr});
    const auto open = [&](bool writes, std::uint32_t channel, std::uint16_t tag) {
      LaneSpec spec = message_spec(writes ? 0 : 1, writes ? 1 : 0, tag, budget.slots_between_hosts(peer));
      spec.channel = static_cast<std::uint16_t>(channel);
      return table.half(1, spec, writes ? LaneEnd::writer : LaneEnd::reader).ok();
    };
    for (const bool writes : {true, false}) {
      for (std::uint16_t tag = 0; tag < kMaxLaneTags; ++tag)
        for (std::uint32_t c = 0; c < (partner || tag < kRailTags ? channels : budget.remote_channels); ++c)
          ASSERT_TRUE(open(writes, c, tag)) << c;
      for (std::uint32_t c = 0; c < std::min(budget.remote_channels, kMaxMessageChannels); ++c)
        ASSERT_TRUE(open(writes, kMessageChannel + c, 0));
    }
    EXPECT_FALSE(open(true, 0, 77));
  }
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
