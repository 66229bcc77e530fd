// Algorithms that distinguish hosts, on even and uneven hosts and racks.
#include <numeric>

#include "src/plan/verify.h"
#include "tests/algorithms/cases.h"
#include "tests/base/case_sampling.h"
#include "tests/plan/reference_interpreter.h"

namespace tutti::test {
namespace {

using cases::Fusion;
using Groups = std::vector<std::vector<Rank>>;

std::vector<Rank> even(Rank hosts, Rank size) { return std::vector<Rank>(hosts, size); }

const Groups kGroups[] = {{even(2, 2)},
                          {even(4, 8)},
                          {even(8, 16)},
                          {{3, 5}},
                          {{1, 8}},
                          {{5, 6, 7, 8}},
                          {{2, 2, 1}},
                          {even(4, 2), even(2, 2)},
                          {{3, 5, 4, 4, 2}, {2, 3}},
                          {even(16, 4), even(4, 4)},
                          {even(8, 2), even(4, 2), even(2, 2)}};

Problem problem_of(const Groups& groups, bool in_place) {
  const Rank ranks = std::accumulate(groups[0].begin(), groups[0].end(), Rank{0});
  return {.collective = Collective::all_reduce, .ranks = ranks, .in_place = in_place, .groups = groups};
}

class Hierarchical : public testing::TestWithParam<const char*> {
 protected:
  const Algorithm& algorithm() const { return *find(Collective::all_reduce, GetParam()); }
};

TEST_P(Hierarchical, VerifiesEvenAndUnevenGroups) {
  for (const Groups& groups : kGroups) {
    for (const bool in_place : {false, true}) {
      const Problem problem = problem_of(groups, in_place);
      ASSERT_TRUE(algorithm().supports(problem)) << describe(problem);
      const std::vector<Plan> plans = emit_plans(algorithm(), problem);
      for (const Fusion fusion : cases::kFusions) {
        const std::vector<Plan> executed = cases::fused(plans, fusion);
        EXPECT_EQ(verify(executed).status().message(), "") << describe(problem) << ", " << cases::name(fusion);
        EXPECT_TRUE(algorithm().supports_compression(problem));
        EXPECT_EQ(verify(executed, {}, Messages::rounded).status().message(), "") << describe(problem);
        if (problem.ranks > 32 || fusion == Fusion::stages) continue;
        EXPECT_EQ(verify(executed, {.chunks = 4, .skew = 1}).status().message(), "") << describe(problem);
      }
    }
  }
}

TEST_P(Hierarchical, ComputesCorrectResults) {
  std::uint64_t seed = 1;
  for (const Groups& groups : kGroups) {
    for (const bool in_place : {false, true}) {
      const Problem problem = problem_of(groups, in_place);
      if (problem.ranks > 20) continue;
      const std::vector<Plan> plans = cases::fused(emit_plans(algorithm(), problem), Fusion::whole_stages);
      const Loop loops[] = {
          {.chunks = 2}, {.chunks = 3, .skew = 1}, {.chunks = 4, .skew = 1, .order = StageOrder::earliest_first}};
      for (Loop loop : loops) {
        const Result<Proof> proof = verify(plans, loop);
        ASSERT_TRUE(proof.ok());
        loop.slots = proof.value().slots;
        const ReferenceResult result = run_reference(plans, loop, ++seed);
        EXPECT_TRUE(result.ok) << describe(problem) << " seed " << seed << ": " << result.text;
      }
    }
  }
}

TEST_P(Hierarchical, RejectsInconsistentGroups) {
  EXPECT_FALSE(algorithm().supports({.ranks = 8, .groups = {}}));
  EXPECT_FALSE(algorithm().supports({.ranks = 8, .groups = {{4, 5}}}));
  EXPECT_FALSE(algorithm().supports({.ranks = 8, .groups = {{8}}}));
  EXPECT_FALSE(algorithm().supports({.ranks = 8, .groups = {{4, 0, 4}}}));
  EXPECT_FALSE(algorithm().supports({.ranks = 8, .groups = {{4, 4}, {1, 2}}}));
}

// Each shard has its own lanes between hosts, and tags have 16 bits.
TEST_P(Hierarchical, RejectsMoreShardsThanTags) {
  EXPECT_TRUE(algorithm().supports({.ranks = 30001, .groups = {{30000, 1}}}));
  EXPECT_FALSE(algorithm().supports({.ranks = 50001, .groups = {{50000, 1}}}));
}

// The bytes that each rank sends to other hosts are minimal.
TEST_P(Hierarchical, SendsMinimalBytesBetweenHosts) {
  constexpr Rank hosts = 4, size = 8;
  const Problem problem = problem_of({even(hosts, size)}, false);
  for (const Plan& plan : emit_plans(algorithm(), problem)) {
    std::uint32_t across = 0;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      for (const Operand& target : plan.steps[i].targets) {
        if (target.space == Space::lane && target.peer / size != plan.steps.self() / size) across += target.count;
      }
    }
    EXPECT_EQ(across * size * hosts, 2 * (hosts - 1) * plan.shape.units);  // 2(k-1)/k of a shard of S/g.
  }
}

// Algorithms of all other collectives send only data to a host that the host lacks.
class MultiHostAlgorithms : public testing::TestWithParam<cases::Entry> {
 protected:
  std::vector<Problem> problems(const Groups& groups) const {
    std::vector<Problem> all;
    Problem problem = problem_of(groups, false);
    problem.collective = GetParam().collective;
    for (Rank root = 0; root < (has_root(problem.collective) ? problem.ranks : 1); ++root) {
      for (const bool in_place : {false, true}) {
        problem.root = root;
        problem.in_place = in_place;
        if (algorithm_.supports(problem)) all.push_back(problem);
      }
    }
    return all;
  }
  const Algorithm& algorithm_ = *GetParam().algorithm;
};

TEST_P(MultiHostAlgorithms, VerifyEvenAndUnevenGroups) {
  std::uint64_t seed = 7, proofs = 0, skipped = 0;
  OneOf cases(5);
  for (const Groups& groups : kGroups) {
    for (const Problem& problem : problems(groups)) {
      if (!cases.takes()) {
        ++skipped;
        continue;
      }
      const std::vector<Plan> plans = emit_plans(algorithm_, problem);
      for (const Fusion fusion : cases::kFusions) {
        const std::vector<Plan> executed = cases::fused(plans, fusion);
        EXPECT_EQ(verify(executed).status().message(), "") << describe(problem) << ", " << cases::name(fusion);
        if (algorithm_.supports_compression(problem)) {
          EXPECT_EQ(verify(executed, {}, Messages::rounded).status().message(), "") << describe(problem);
        }
        ++proofs;
        if (problem.ranks > 20 || fusion == Fusion::stages) continue;
        Loop loop{.chunks = 3, .skew = 1, .order = StageOrder::earliest_first};
        const Result<Proof> proof = verify(executed, loop);
        ASSERT_TRUE(proof.ok()) << describe(problem);
        EXPECT_LE(proof.value().slots, 4U)
            << describe(problem);  // The number of slots that lanes of a communicator have.
        loop.slots = proof.value().slots;
        const ReferenceResult result = run_reference(executed, loop, ++seed);
        EXPECT_TRUE(result.ok) << describe(problem) << " seed " << seed << ": " << result.text;
      }
    }
  }
  EXPECT_GE(proofs + skipped * std::size(cases::kFusions), 40U);
}

TEST_P(MultiHostAlgorithms, RejectInconsistentGroups) {
  Problem problem = {.collective = GetParam().collective, .ranks = 8, .groups = {}};
  EXPECT_FALSE(algorithm_.supports(problem));
  for (const Groups& groups : {Groups{{4, 5}}, Groups{{8}}, Groups{{4, 0, 4}}}) {
    problem.groups = groups;
    EXPECT_FALSE(algorithm_.supports(problem));
  }
}

// On 4 hosts of 8 ranks, each block crosses between two hosts only once.
TEST_P(MultiHostAlgorithms, SendMinimalBytesBetweenHosts) {
  constexpr Rank hosts = 4, size = 8;
  Problem problem = problem_of({even(hosts, size)}, false);
  problem.collective = GetParam().collective;
  std::vector<std::uint64_t> sent(hosts);
  const std::vector<Plan> plans = emit_plans(algorithm_, problem);
  for (const Plan& plan : plans) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      for (const Operand& target : plan.steps[i].targets) {
        const Rank host = plan.steps.self() / size;
        if (target.space == Space::lane && target.peer / size != host) sent[host] += target.count;
      }
    }
  }
  const std::uint64_t units = plans[0].shape.units;
  const std::string_view name = algorithm_.name();
  const bool sends_whole_sums = name == "host_one_shot" || name == "host_doubling";
  for (Rank host = 0; host < hosts; ++host) {
    switch (problem.collective) {
      case Collective::all_reduce: EXPECT_LE(sent[host], units * (sends_whole_sums ? size * (hosts - 1) : 2)); break;
      case Collective::reduce: EXPECT_EQ(sent[host], host == 0 ? 0 : units); break;
      case Collective::broadcast: EXPECT_EQ(sent[host], host == hosts - 1 ? 0 : units); break;
      case Collective::all_to_all: EXPECT_EQ(sent[host], std::uint64_t{size} * size * (hosts - 1)); break;
      default: EXPECT_EQ(sent[host], std::uint64_t{size} * (hosts - 1)); break;
    }
  }
}

// Excludes the algorithms that cut a block into shards, which have tests of their own.
std::vector<cases::Entry> entries_over_hosts() {
  std::vector<cases::Entry> entries = cases::all_entries();
  std::erase_if(entries, [](const cases::Entry& entry) {
    const std::string_view name = entry.algorithm->name();
    return !requires_hosts(*entry.algorithm, entry.collective) ||
           (entry.collective == Collective::all_reduce && (name == "hierarchical" || name == "hierarchical_ring"));
  });
  return entries;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, MultiHostAlgorithms, testing::ValuesIn(entries_over_hosts()), cases::title_of);

TEST(HostTrees, CountRoundings) {
  for (const auto& [hosts, size] : {std::pair<Rank, Rank>{2, 4}, {4, 1}, {4, 8}, {8, 2}, {3, 3}}) {
    for (const Collective collective : {Collective::all_reduce, Collective::reduce}) {
      Problem problem = problem_of({even(hosts, size)}, false);
      problem.collective = collective;
      for (problem.root = 0; problem.root < (has_root(collective) ? problem.ranks : 1); ++problem.root) {
        const Algorithm& algorithm = *find(collective, "hierarchical_tree");
        const double proved = verify(emit_plans(algorithm, problem), {}, Messages::rounded).value().rounded;
        // The halves of a reduce reach the root from both ends of a chain: the verifier proves the maximum, and the law
        // states the mean.
        const bool alike = std::has_single_bit(hosts) && collective != Collective::reduce;
        const double tolerance = alike ? 1e-9 : 0.3 * proved;
        EXPECT_NEAR(algorithm.cost_law(problem).rounded, proved, tolerance) << describe(problem);
      }
    }
  }
}

// Chains follow the order of ranks, rotated in the host of a root. Ranks at the ends of a host are its leaders.
TEST(HostTrees, ConnectAdjacentRanksAndHostEnds) {
  const std::vector<Rank> hosts = {3, 5, 1, 4, 4};
  const auto position_of = [&](Rank rank) {
    Rank host = 0;
    while (rank >= hosts[host]) rank -= hosts[host++];
    return std::pair(host, rank);
  };
  for (const Collective collective : {Collective::all_reduce, Collective::reduce}) {
    Problem problem = problem_of({hosts}, false);
    problem.collective = collective;
    problem.root = has_root(collective) ? 5 : 0;  // In the middle of its host.
    std::vector<std::uint64_t> lanes(hosts.size());
    for (const Plan& plan : emit_plans(*find(collective, "hierarchical_tree"), problem)) {
      const auto [host, position] = position_of(plan.steps.self());
      const auto is_end = [&, host = host](Rank end) { return end == 0 || end + 1 == hosts[host]; };
      for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        for (const Operand& target : plan.steps[i].targets) {
          if (target.space != Space::lane) continue;
          const auto [other, there] = position_of(target.peer);
          const Rank apart = std::max(position, there) - std::min(position, there);
          if (other != host) EXPECT_TRUE(is_end(position)) << plan.steps.self();
          else EXPECT_TRUE(apart == 1 || (has_root(collective) && host == 1 && apart == hosts[host] - 1));
          if (other != host) ++lanes[host];
        }
      }
    }
    // A rank is an inner node of at most one tree. In an all-reduce, the rank sends up and to two children in that
    // tree, and up in the other tree.
    for (const std::uint64_t count : lanes) EXPECT_LE(count, collective == Collective::reduce ? 2U : 4U);
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Hierarchical, testing::Values("hierarchical", "hierarchical_ring"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace tutti::test
