// Recursive doubling all-reduce: in round i, ranks whose numbers differ in bit i exchange their partial sums. The lower
// rank's operand is the left one on both sides, so both get identical bits, and the sum is in rank order. Cost: log2(n)
// (alpha + S beta). For small messages and many ranks. If n is not a power of two, the excess ranks first send their
// inputs to a peer, and finally receive the result. This adds 2 (alpha + S beta). Source: R. Thakur, R. Rabenseifner,
// W. Gropp, "Optimization of collective communication operations in MPICH", 2005.
#include <bit>

#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

// The ranks that take part in the exchanges. The first 2 * extra ranks form pairs, of which the odd rank does not take
// part.
struct Players {
  explicit Players(Rank n) : count(std::bit_floor(n)), extra(n - count) {}
  bool is_paired(Rank rank) const { return rank < 2 * extra; }
  bool sits_out(Rank rank) const { return is_paired(rank) && rank % 2 == 1; }
  Rank player(Rank rank) const { return is_paired(rank) ? rank / 2 : rank - extra; }
  Rank rank(Rank player) const { return player < extra ? 2 * player : player + extra; }

  Rank count, extra;
};

class RecursiveDoubling : public Entry<Algorithm> {
 public:
  RecursiveDoubling()
      : Entry(Collective::all_reduce, "recursive_doubling", "log2(n) exchanges of the whole buffer, log2(n) S") {}

  Shape shape(const Problem& problem) const override {
    const Players players(problem.ranks);
    const auto exchanges = static_cast<std::uint32_t>(std::bit_width(players.count) - 1);
    return {.rounds = std::max(1u, exchanges + (players.extra > 0 ? 2 : 0)), .stages = {0}};
  }

  // Each rank computes its own sum, from its exact input and the compressed partial sums of others.
  bool supports_compression(const Problem& problem) const override { return problem.ranks == 1; }

  CostLaw cost_law(const Problem& problem) const override {
    const Players players(problem.ranks);
    const std::vector<RoundTraffic> rounds(std::bit_width(players.count) - 1, {.sent = 1, .received = 1});
    CostLaw cost_law = with_distances(problem, rounds, Partners::by_bits);
    cost_law.folded = cost_law.levels[0].sent + cost_law.levels[1].sent;
    cost_law.longest = 1;
    if (players.extra == 0) return cost_law;
    cost_law.folded += 1;  // Inputs of the excess ranks, which later receive the result.
    return then(cost_law, with_arbitrary_ranks(
                              problem, {.depth = 2, .chain = 2, .stalls = 2, .sent = 1, .received = 1, .messages = 2}));
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Players players(problem.ranks);
    if (problem.ranks == 1) return steps.fold({input(0)}, {output(0)}, Fold::complete);
    if (players.extra == 0) return exchange(players, self, round, steps);
    if (round == 0) return hand_in(players, self, steps);
    if (round + 1 == shape(problem).rounds) return hand_out(players, self, steps);
    if (!players.sits_out(self)) exchange(players, self, round - 1, steps);
  }

 private:
  static void hand_in(const Players& players, Rank self, Steps& steps) {
    if (players.sits_out(self)) steps.send(input(0), self - 1);
    else if (players.is_paired(self)) steps.fold({input(0), lane(self + 1, 1)}, {output(0)});
  }

  static void hand_out(const Players& players, Rank self, Steps& steps) {
    if (players.sits_out(self)) steps.recv(self - 1, output(0));
    else if (players.is_paired(self)) steps.send(output(0), self + 1);
  }

  static void exchange(const Players& players, Rank self, std::uint32_t bit, Steps& steps) {
    const Rank partner = players.rank(players.player(self) ^ Rank{1} << bit);
    const Operand own = bit == 0 && !players.is_paired(self) ? input(0) : output(0);
    const Operand other = lane(partner, 1);
    const Fold fold = Rank{2} << bit == players.count ? Fold::complete : Fold::partial;
    steps.send(own, partner);
    if (partner < self) steps.fold({other, own}, {output(0)}, fold);
    else steps.fold({own, other}, {output(0)}, fold);
  }
};

}  // namespace

const Algorithm& recursive_doubling_all_reduce() { return instance_of<RecursiveDoubling>(); }

}  // namespace tutti
