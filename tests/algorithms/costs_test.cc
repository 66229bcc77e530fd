// The cost laws that algorithms claim: messages that depend on each other, and bytes that a rank sends. The test
// compares each CostLaw with counts from the plans of all ranks.
#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <tuple>

#include "src/plan/verify.h"
#include "tests/algorithms/cases.h"

namespace tutti::test {
namespace {

struct Cost {
  std::uint32_t depth = 0;  // Messages in the longest chain.
  std::uint32_t sent = 0;   // Units sent by the rank that sends most.
  bool operator==(const Cost&) const = default;
};
void PrintTo(const Cost& cost, std::ostream* out) { *out << "depth " << cost.depth << " sent " << cost.sent; }

// Runs the plans, counting instead of moving data. A message arrives one later than it was sent.
class Accountant {
 public:
  explicit Accountant(std::span<const Plan> plans) : plans_(plans), ranks_(plans.size()) {}

  Cost count() {
    for (bool moved = true; moved;) {
      moved = false;
      for (Rank rank = 0; rank < ranks_.size(); ++rank) {
        while (ranks_[rank].step < plans_[rank].steps.size() && run_plan(rank)) moved = true;
      }
    }
    Cost cost;
    for (Rank rank = 0; rank < ranks_.size(); ++rank) {
      EXPECT_EQ(ranks_[rank].step, plans_[rank].steps.size()) << "blocked";
      cost = {std::max(cost.depth, ranks_[rank].depth), std::max(cost.sent, ranks_[rank].sent)};
    }
    return cost;
  }

 private:
  struct Account {
    std::size_t step = 0;
    std::uint32_t depth = 0, sent = 0;
  };

  bool run_plan(Rank rank) {
    Account& account = ranks_[rank];
    const Step step = plans_[rank].steps[account.step];
    for (const Operand& source : step.sources) {
      if (source.space == Space::lane && lanes_[{source.peer, rank, source.tag}].empty()) return false;
    }
    for (const Operand& source : step.sources) {
      if (source.space != Space::lane) continue;
      std::deque<std::uint32_t>& lane = lanes_[{source.peer, rank, source.tag}];
      account.depth = std::max(account.depth, lane.front() + 1);
      lane.pop_front();
    }
    for (const Operand& target : step.targets) {
      if (target.space != Space::lane) continue;
      lanes_[{rank, target.peer, target.tag}].push_back(account.depth);
      account.sent += target.count;
    }
    ++account.step;
    return true;
  }

  std::span<const Plan> plans_;
  std::vector<Account> ranks_;
  std::map<std::tuple<Rank, Rank, std::uint16_t>, std::deque<std::uint32_t>> lanes_;
};

Cost cost_of(Collective collective, const char* name, Rank n) {
  const Algorithm* algorithm = find(collective, name);
  return Accountant(emit_plans(*algorithm, {.collective = collective, .ranks = n, .groups = {}})).count();
}

TEST(Costs, ReduceScatterAndAllGatherSendMinimalBytes) {
  for (const Collective collective : {Collective::reduce_scatter, Collective::all_gather}) {
    const bool gathers = collective == Collective::all_gather;
    for (const Rank n : {2, 4, 16, 64}) {
      const std::uint32_t log = static_cast<std::uint32_t>(std::bit_width(n)) - 1;
      EXPECT_EQ(cost_of(collective, "ring", n), (Cost{n - 1, n - 1}));
      EXPECT_EQ(cost_of(collective, gathers ? "doubling" : "halving", n), (Cost{log, n - 1}));
      EXPECT_EQ(cost_of(collective, "bruck", n), (Cost{log, n - 1}));
      EXPECT_EQ(cost_of(collective, "direct", n), (Cost{1, n - 1}));
    }
    for (const Rank n : {3, 5, 13, 50, 63}) {
      EXPECT_EQ(cost_of(collective, "ring", n), (Cost{n - 1, n - 1}));
      EXPECT_EQ(cost_of(collective, "bruck", n), (Cost{static_cast<std::uint32_t>(std::bit_width(n - 1)), n - 1}));
    }
  }
}

TEST(Costs, AllReduceMatchesExpected) {
  constexpr Rank n = 16;  // Composed algorithms count in sixteenths of a block.
  EXPECT_EQ(cost_of(Collective::all_reduce, "ring", n), (Cost{30, 30}));
  EXPECT_EQ(cost_of(Collective::all_reduce, "halving_doubling", n), (Cost{8, 30}));
  EXPECT_EQ(cost_of(Collective::all_reduce, "two_shot", n), (Cost{2, 30}));
  EXPECT_EQ(cost_of(Collective::all_reduce, "one_shot", n), (Cost{1, 15}));
  EXPECT_EQ(cost_of(Collective::all_reduce, "recursive_doubling", n), (Cost{4, 4}));
  EXPECT_EQ(cost_of(Collective::all_reduce, "double_binary_tree", n), (Cost{8, 4}));  // Counted in halves of a block.
}

TEST(Costs, DoubleBinaryTreeHasEachRankInsideAtMostOneTree) {
  for (Rank n = 3; n <= 64; ++n) {
    const Cost cost = cost_of(Collective::all_reduce, "double_binary_tree", n);
    EXPECT_LE(cost.sent, 4U) << n << " ranks: one is inside both trees";
    EXPECT_LE(cost.depth, 2 * static_cast<std::uint32_t>(std::bit_width(n - 1))) << n << " ranks";
  }
}

TEST(Costs, RootedCollectivesMatchExpected) {
  constexpr Rank n = 16;
  EXPECT_EQ(cost_of(Collective::broadcast, "chain", n), (Cost{15, 1}));
  EXPECT_EQ(cost_of(Collective::broadcast, "binary_tree", n), (Cost{4, 2}));
  EXPECT_EQ(cost_of(Collective::broadcast, "direct", n), (Cost{1, 15}));
  EXPECT_EQ(cost_of(Collective::reduce, "chain", n), (Cost{15, 1}));
  EXPECT_EQ(cost_of(Collective::reduce, "binary_tree", n), (Cost{4, 1}));
  EXPECT_EQ(cost_of(Collective::reduce, "direct", n), (Cost{1, 1}));
  EXPECT_EQ(cost_of(Collective::gather, "direct", n), (Cost{1, 1}));
  EXPECT_EQ(cost_of(Collective::gather, "binomial_tree", n), (Cost{4, 8}));
  EXPECT_EQ(cost_of(Collective::scatter, "direct", n), (Cost{1, 15}));
  EXPECT_EQ(cost_of(Collective::scatter, "binomial_tree", n), (Cost{4, 15}));
}

TEST(Costs, AllToAllMatchesExpected) {
  constexpr Rank n = 16;
  EXPECT_EQ(cost_of(Collective::all_to_all, "pairwise", n), (Cost{15, 15}));
  EXPECT_EQ(cost_of(Collective::all_to_all, "exchange", n), (Cost{16, 15}));
  EXPECT_EQ(cost_of(Collective::all_to_all, "direct", n), (Cost{1, 15}));
  EXPECT_EQ(cost_of(Collective::all_to_all, "bruck", n), (Cost{4, 32}));
}

// Latencies that the head comments state for k hosts of equal sizes.
TEST(Costs, DepthsOverHostsMatchExpected) {
  for (const Rank k : {2, 4, 8, 16}) {
    const auto depth = [=](Collective collective, const char* name) {
      const std::vector<Rank> hosts(k, 3);
      const Problem problem{.collective = collective, .ranks = 3 * k, .groups = {hosts}};
      return Accountant(emit_plans(*find(collective, name), problem)).count().depth;
    };
    for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
      EXPECT_EQ(depth(collective, "hierarchical"), k / 2 + 1);
      EXPECT_EQ(depth(collective, "host_ring"), k);
    }
    EXPECT_EQ(depth(Collective::all_reduce, "host_tree"), 2U + 2 * static_cast<std::uint32_t>(std::bit_width(k - 1)));
    EXPECT_EQ(depth(Collective::all_reduce, "host_one_shot"), 2U);
    EXPECT_EQ(depth(Collective::all_reduce, "host_doubling"), static_cast<std::uint32_t>(std::bit_width(k)));
    EXPECT_EQ(depth(Collective::broadcast, "hierarchical"), k + 1);
  }
}

// Counts the figures of a CostLaw in the written plans of all ranks.
class Count {
 public:
  explicit Count(std::span<const Plan> plans)
      : plans_(plans), ranks_(plans.size()), units_(plans[0].shape.units), host_of_(plans.size(), 0) {
    const auto& groups = plans[0].problem.groups;
    if (groups.empty()) return;
    host_of_.clear();
    for (Rank host = 0; host < groups[0].size(); ++host) host_of_.insert(host_of_.end(), groups[0][host], host);
  }
  static Count of(std::span<const Plan> plans) {
    Count count(plans);
    while (count.pass()) {
    }
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      EXPECT_EQ(count.ranks_[rank].step, plans[rank].steps.size()) << "rank " << rank << " is blocked";
    }
    return count;
  }

  struct MessageChain {  // The longest chain is the one with most messages between hosts.
    double across = 0, inside = 0;
    bool operator<(const MessageChain& other) const {
      return across != other.across ? across < other.across : inside < other.inside;
    }
  };
  struct Account {
    std::size_t step = 0;
    MessageChain chain;
    std::array<Traffic, 2> levels;
    double folded = 0, copied = 0;
  };

  MessageChain longest() const {
    MessageChain chain;
    for (const Account& account : ranks_) chain = std::max(chain, account.chain);
    return chain;
  }
  double longest_message() const { return longest_message_; }
  double between() const {
    double max = 0;
    for (const auto& [host, blocks] : leaving_) max = std::max(max, blocks);
    for (const auto& [host, blocks] : arriving_) max = std::max(max, blocks);
    return max;
  }
  const std::vector<Account>& ranks() const { return ranks_; }
  template <typename Of>
  double max(Of of) const {
    double max = 0;
    for (const Account& account : ranks_) max = std::max(max, static_cast<double>(of(account)));
    return max;
  }

 private:
  bool pass() {
    bool moved = false;
    for (Rank rank = 0; rank < ranks_.size(); ++rank) {
      while (ranks_[rank].step < plans_[rank].steps.size() && run_plan(rank)) moved = true;
    }
    return moved;
  }

  static bool meets(const Operand& operand) { return operand.space == Space::lane || operand.space == Space::flag; }
  auto key(Rank writer, Rank reader, const Operand& operand) const {
    return std::tuple(writer, reader, operand.tag, operand.space);
  }

  bool run_plan(Rank rank) {
    Account& account = ranks_[rank];
    const Step step = plans_[rank].steps[account.step];
    for (const Operand& source : step.sources) {
      if (meets(source) && lanes_[key(source.peer, rank, source)].empty()) return false;
    }
    double data = 0, length = 0, own = 0;
    for (const Operand& source : step.sources) {
      const bool across = host_of_[source.peer] != host_of_[rank];
      Traffic& level = account.levels[across ? 1 : 0];
      const double blocks = static_cast<double>(source.count) / units_;
      const bool others = source.space == Space::lane || (source.is_memory() && source.peer != rank);
      if (meets(source)) {
        auto& lane = lanes_[key(source.peer, rank, source)];
        MessageChain chain = lane.front();
        lane.pop_front();
        (across ? chain.across : chain.inside) += 1;
        account.chain = std::max(account.chain, chain);
        level.messages += 1;
      }
      if (others) level.received += blocks;
      if (others && across) arriving_[host_of_[rank]] += blocks;
      if (source.space != Space::flag) data += 1, length = blocks, own += others ? 0 : 1;
    }
    if (data > 1) account.folded += (data - 1) * length;
    for (const Operand& target : step.targets) {
      const bool across = host_of_[target.peer] != host_of_[rank];
      Traffic& level = account.levels[across ? 1 : 0];
      const double blocks = static_cast<double>(target.count) / units_;
      if (meets(target)) {
        lanes_[key(rank, target.peer, target)].push_back(account.chain);
        level.messages += 1;
      }
      if (target.space == Space::lane) longest_message_ = std::max(longest_message_, blocks);
      const bool others = target.space == Space::lane || (target.is_memory() && target.peer != rank);
      if (others) level.sent += blocks;
      if (others && across) leaving_[host_of_[rank]] += blocks;
      if (!others && target.space != Space::flag && data == 1 && own == 1) account.copied += blocks;
    }
    ++account.step;
    return true;
  }

  std::span<const Plan> plans_;
  std::vector<Account> ranks_;
  double units_;
  std::vector<Rank> host_of_;
  double longest_message_ = 0;
  std::map<Rank, double> leaving_, arriving_;
  std::map<std::tuple<Rank, Rank, std::uint16_t, Space>, std::deque<MessageChain>> lanes_;
};

constexpr double kLittle = 1e-9;
bool near(double a, double b) { return std::abs(a - b) < kLittle; }

// On one host the law equals the count. For other numbers of ranks, algorithms that prefer powers of two may
// overestimate.
TEST(CostLaws, MatchPlansOfAllRanks) {
  for (const cases::Entry& entry : cases::flat_entries()) {
    for (Rank n = 2; n <= 64; n += n < 9 ? 1 : 11) {
      const Problem problem{.collective = entry.collective, .ranks = n, .groups = {}};
      if (!entry.algorithm->supports(problem)) continue;
      SCOPED_TRACE(cases::title(entry) + " of " + std::to_string(n));
      std::vector<Plan> plans = emit_plans(*entry.algorithm, problem);
      for (Plan& plan : plans) expand_all_ranks(plan);
      const Count count = Count::of(plans);
      const CostLaw cost_law = entry.algorithm->cost_law(problem);
      const Traffic& level = cost_law.levels[0];
      EXPECT_EQ(cost_law.units, plans[0].shape.units);
      EXPECT_NEAR(cost_law.longest, count.longest_message(), kLittle);
      const auto moved = [](const Count::Account& account) {
        return account.levels[0].sent + account.levels[0].received;
      };
      const auto messages = [](const Count::Account& account) { return account.levels[0].messages; };
      const auto folded = [](const Count::Account& account) { return account.folded; };
      if (std::has_single_bit(n)) {
        EXPECT_NEAR(level.depth, count.longest().inside, kLittle);
        EXPECT_NEAR(level.sent + level.received, count.max(moved), kLittle);
        const auto& ranks = count.ranks();
        EXPECT_TRUE(std::any_of(ranks.begin(), ranks.end(),
                                [&](const Count::Account& account) {
                                  return near(account.levels[0].sent, level.sent) &&
                                         near(account.levels[0].received, level.received) &&
                                         near(messages(account), level.messages) &&
                                         near(account.folded, cost_law.folded) && near(account.copied, cost_law.copied);
                                }))
            << "of no rank: sent " << level.sent << " received " << level.received << " messages " << level.messages
            << " folded " << cost_law.folded << " copied " << cost_law.copied;
      } else {
        EXPECT_NEAR(level.depth, count.longest().inside, 0.5 * level.depth);
        EXPECT_NEAR(level.sent + level.received, count.max(moved), 0.35 * count.max(moved));
        EXPECT_NEAR(level.messages, count.max(messages), 0.5 * count.max(messages));
        EXPECT_NEAR(cost_law.folded, count.max(folded), 0.35 * count.max(folded));
      }
      EXPECT_EQ(cost_law.levels[1], Traffic());
    }
  }
}

// The count of roundings is exact, except for halving with numbers that are not powers of two, and for hosts of uneven
// size. In these cases the ranks' blocks differ: the verifier proves the maximum, and the law states the mean.
TEST(CostLaws, CountRoundings) {
  for (const cases::Entry& entry : cases::flat_entries()) {
    for (Rank n = 2; n <= 64; n += n < 9 ? 1 : 11) {
      const Problem problem{.collective = entry.collective, .ranks = n, .groups = {}};
      if (accesses_peers(entry.algorithm->name()) || !entry.algorithm->supports(problem) ||
          !entry.algorithm->supports_compression(problem))
        continue;
      SCOPED_TRACE(cases::title(entry) + " of " + std::to_string(n));
      const double proved = verify(emit_plans(*entry.algorithm, problem), {}, Messages::rounded).value().rounded;
      const double reported = entry.algorithm->cost_law(problem).rounded;
      const bool uneven = std::string_view(entry.algorithm->name()).starts_with("halving") && !std::has_single_bit(n);
      EXPECT_NEAR(reported, proved, uneven ? 0.25 * proved : kLittle);
    }
  }
}

TEST(CostLaws, CountRoundings_AcrossHosts) {
  const std::vector<Rank> layouts[] = {{1, 1},       {2, 2},       {2, 2, 2, 2}, {4, 4},
                                       {1, 1, 1, 1}, {4, 4, 4, 4}, {3, 5},       {1, 4, 2}};
  for (const cases::Entry& entry : cases::all_entries()) {
    if (!requires_hosts(*entry.algorithm, entry.collective)) continue;
    for (const std::vector<Rank>& hosts : layouts) {
      const Rank ranks = std::accumulate(hosts.begin(), hosts.end(), Rank{0});
      const Problem problem{.collective = entry.collective, .ranks = ranks, .groups = {hosts}};
      if (!entry.algorithm->supports(problem) || !entry.algorithm->supports_compression(problem)) continue;
      SCOPED_TRACE(cases::title(entry) + " of " + describe(problem));
      const double proved = verify(emit_plans(*entry.algorithm, problem), {}, Messages::rounded).value().rounded;
      const bool even = std::count(hosts.begin(), hosts.end(), hosts[0]) == static_cast<std::ptrdiff_t>(hosts.size());
      // The parts of a reduce reach the root by different numbers of messages: the verifier proves the maximum, and the
      // law states the mean.
      const bool reduces = entry.collective == Collective::reduce;
      EXPECT_NEAR(entry.algorithm->cost_law(problem).rounded, proved, even && !reduces ? kLittle : 0.3 * proved);
    }
  }
}

// The law is exact for algorithms that distinguish hosts, and an upper bound for other algorithms.
TEST(CostLaws, AreUpperBounds_AcrossHosts) {
  const std::vector<Rank> layouts[] = {
      {2, 2}, {4, 4}, {8, 8, 8, 8}, {3, 5}, {1, 4, 2}, {6, 6, 6}, std::vector<Rank>(16, 4)};
  for (const cases::Entry& entry : cases::all_entries()) {
    for (const std::vector<Rank>& hosts : layouts) {
      const Rank ranks = std::accumulate(hosts.begin(), hosts.end(), Rank{0});
      const Problem problem{.collective = entry.collective, .ranks = ranks, .groups = {hosts}};
      if (!entry.algorithm->supports(problem) || accesses_peers(entry.algorithm->name())) continue;
      SCOPED_TRACE(cases::title(entry) + " of " + describe(problem));
      const std::vector<Plan> plans = emit_plans(*entry.algorithm, problem);
      const Count count = Count::of(plans);
      const CostLaw cost_law = entry.algorithm->cost_law(problem);
      EXPECT_EQ(cost_law.units, plans[0].shape.units);
      const double sent = count.max([](const Count::Account& account) { return account.levels[1].sent; });
      const double received = count.max([](const Count::Account& account) { return account.levels[1].received; });
      const Traffic& across = cost_law.levels[1];
      const bool even = std::count(hosts.begin(), hosts.end(), hosts[0]) == static_cast<std::ptrdiff_t>(hosts.size());
      if (even) {
        EXPECT_GE(across.depth + kLittle, count.longest().across);
      }
      EXPECT_GE(std::max(across.sent, across.received) + kLittle, std::max(sent, received));
      EXPECT_GE(across.between + kLittle, count.between());
      if (!requires_hosts(*entry.algorithm, entry.collective)) continue;
      EXPECT_LE(across.depth, 2 * count.longest().across);
      EXPECT_LE(across.between, 2 * count.between() + kLittle);
      EXPECT_LE(std::max(across.sent, across.received), 2 * std::max(sent, received) + kLittle);
    }
  }
}

}  // namespace
}  // namespace tutti::test
