// The cost laws that the algorithms claim: messages that depend on each other, and bytes that a rank sends.
#include <deque>
#include <map>

#include "tests/algorithms/cases.h"

namespace tutti {
namespace {

struct Cost {
  std::uint32_t depth = 0;  // Messages in the longest chain.
  std::uint32_t sent = 0;   // Units by the rank that sends most.
  bool operator==(const Cost&) const = default;
};
void PrintTo(const Cost& cost, std::ostream* out) { *out << "depth " << cost.depth << " sent " << cost.sent; }

// Obeys the plans, counting instead of moving; a message arrives one later than it was sent.
class Accountant {
 public:
  explicit Accountant(std::span<const Plan> plans) : plans_(plans), ranks_(plans.size()) {}

  Cost count() {
    for (bool moved = true; moved;) {
      moved = false;
      for (Rank rank = 0; rank < ranks_.size(); ++rank) {
        while (ranks_[rank].step < plans_[rank].steps.size() && obey(rank)) moved = true;
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

  bool obey(Rank rank) {
    Account& account = ranks_[rank];
    const Step step = plans_[rank].steps[account.step];
    for (const Operand& source : step.sources) {
      if (source.place == Place::lane && lanes_[{source.peer, rank}].empty()) return false;
    }
    for (const Operand& source : step.sources) {
      if (source.place != Place::lane) continue;
      std::deque<std::uint32_t>& lane = lanes_[{source.peer, rank}];
      account.depth = std::max(account.depth, lane.front() + 1);
      lane.pop_front();
    }
    for (const Operand& target : step.targets) {
      if (target.place != Place::lane) continue;
      lanes_[{rank, target.peer}].push_back(account.depth);
      account.sent += target.count;
    }
    ++account.step;
    return true;
  }

  std::span<const Plan> plans_;
  std::vector<Account> ranks_;
  std::map<std::pair<Rank, Rank>, std::deque<std::uint32_t>> lanes_;
};

Cost cost_of(Collective collective, const char* name, Rank n) {
  const Algorithm* algorithm = find(collective, name);
  return Accountant(emit_plans(*algorithm, {.collective = collective, .ranks = n, .groups = {}})).count();
}

TEST(Costs, OfReduceScatterAndAllGatherAreTheLeastBytes) {
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

TEST(Costs, OfAllReduce) {
  constexpr Rank n = 16;  // Compositions count in sixteenths of a block.
  EXPECT_EQ(cost_of(Collective::all_reduce, "ring", n), (Cost{30, 30}));
  EXPECT_EQ(cost_of(Collective::all_reduce, "halving_doubling", n), (Cost{8, 30}));
  EXPECT_EQ(cost_of(Collective::all_reduce, "two_shot", n), (Cost{2, 30}));
  EXPECT_EQ(cost_of(Collective::all_reduce, "one_shot", n), (Cost{1, 15}));
  EXPECT_EQ(cost_of(Collective::all_reduce, "recursive_doubling", n), (Cost{4, 4}));
  EXPECT_EQ(cost_of(Collective::all_reduce, "double_binary_tree", n), (Cost{8, 4}));  // Halves of a block.
}

TEST(Costs, OfTwoTreesAreNoRanksTwice) {
  for (Rank n = 3; n <= 64; ++n) {
    const Cost cost = cost_of(Collective::all_reduce, "double_binary_tree", n);
    EXPECT_LE(cost.sent, 4U) << n << " ranks: one is inside both trees";
    EXPECT_LE(cost.depth, 2 * static_cast<std::uint32_t>(std::bit_width(n - 1))) << n << " ranks";
  }
}

TEST(Costs, OfRootedCollectives) {
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

TEST(Costs, OfAllToAll) {
  constexpr Rank n = 16;
  EXPECT_EQ(cost_of(Collective::all_to_all, "pairwise", n), (Cost{15, 15}));
  EXPECT_EQ(cost_of(Collective::all_to_all, "exchange", n), (Cost{16, 15}));
  EXPECT_EQ(cost_of(Collective::all_to_all, "direct", n), (Cost{1, 15}));
  EXPECT_EQ(cost_of(Collective::all_to_all, "bruck", n), (Cost{4, 32}));
}

}  // namespace
}  // namespace tutti
