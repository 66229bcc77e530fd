#include "tools/simulator/symmetry.h"

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <span>
#include <tuple>
#include <utility>

namespace tutti::simulator {
namespace {

constexpr Rank kFewRanks = 256;                    // Maximum ranks to compare.
constexpr std::uint32_t kMaxRounds = 128;          // Maximum rounds to compare.
constexpr std::uint64_t kMaxOperands = 2'000'000;  // Maximum operands to compare for each candidate.

struct Signature {
  Space space;
  std::uint32_t count;
  Rank peer;
  std::uint16_t tag;
};

// Returns the operands with peers replaced by their images. The images need not be in the order of ranks.
std::vector<Signature> signatures(std::span<const Operand> operands, const Symmetry* symmetry, Rank element) {
  std::vector<Signature> made;
  for (const Operand& operand : operands)
    made.push_back({operand.space, operand.count,
                    symmetry == nullptr ? operand.peer : symmetry->moved(operand.peer, element), operand.tag});
  return made;
}

// Differences found so far between the tags of lanes and flags to a peer and those to its image.
using Tags = std::map<std::pair<Space, Rank>, std::int32_t>;

bool alike(std::span<const Signature> a, std::span<const Signature> b, Tags& tags) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].space != b[i].space || a[i].count != b[i].count || a[i].peer != b[i].peer) return false;
    if (a[i].space != Space::lane && a[i].space != Space::flag) continue;
    const std::int32_t distance = std::int32_t{b[i].tag} - a[i].tag;
    if (tags.try_emplace({a[i].space, a[i].peer}, distance).first->second != distance) return false;
  }
  return true;
}

// Returns true if b is the image of a: the same operands with the images of the peers. The indices of units may differ.
// Tags may differ by the same amount for all lanes and flags of a peer.
bool alike(const Steps& a, const Steps& b, const Symmetry& symmetry, Rank element, Tags& tags) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto sources = signatures(a[i].sources, &symmetry, element);
    auto images = signatures(b[i].sources, nullptr, 0);
    const auto by_peer = [](const Signature& x, const Signature& y) {
      return std::tie(x.space, x.peer, x.tag) < std::tie(y.space, y.peer, y.tag);
    };
    std::sort(sources.begin(), sources.end(), by_peer);
    std::sort(images.begin(), images.end(), by_peer);
    if (!alike(sources, images, tags)) return false;
    if (!alike(signatures(a[i].targets, &symmetry, element), signatures(b[i].targets, nullptr, 0), tags)) return false;
  }
  return true;
}

bool alike(const Network& network, const Route& a, const Route& b) {
  if (a.links != b.links || a.latency_us != b.latency_us || a.outs != b.outs || a.ins != b.ins) return false;
  const auto same = [&](ResourceId x, ResourceId y) {
    const Resource p = network.resource(x), q = network.resource(y);
    return p.kind == q.kind && p.gbytes_per_s == q.gbytes_per_s && p.parallel == q.parallel;
  };
  return std::equal(a.out.begin(), a.out.begin() + a.outs, b.out.begin(), same) &&
         std::equal(a.in.begin(), a.in.begin() + a.ins, b.in.begin(), same);
}

class Judge {
 public:
  Judge(const Algorithm& algorithm, const Problem& problem, const Network& network)
      : algorithm_(algorithm), problem_(problem), network_(network), rounds_(algorithm.shape(problem).rounds) {}

  bool holds(const Symmetry& symmetry) const {
    seen_ = 0;
    if (problem_.ranks <= kFewRanks) {
      for (Rank rank = 0; rank < problem_.ranks; ++rank)
        if (!holds(symmetry, rank)) return false;
      return true;
    }
    std::mt19937_64 random(1);
    for (Rank i = 0; i < kFewRanks && seen_ < kMaxOperands; ++i)
      if (!holds(symmetry, static_cast<Rank>(i % 2 == 0 ? i / 2 : random() % problem_.ranks))) return false;
    return true;
  }

 private:
  // Checks the generators of the group.
  bool holds(const Symmetry& symmetry, Rank rank) const {
    const auto each = [&](const Symmetry::Axis& axis, Rank unit) {
      const Rank end = axis.moves == Symmetry::Moves::rotate ? std::min(axis.order(), 2U) : axis.order();
      for (Rank element = 1; element < end; element *= 2)
        if (!holds(symmetry, rank, element * unit)) return false;
      return true;
    };
    return each(symmetry.hosts, 1) && each(symmetry.places, symmetry.hosts.order());
  }

  // Checks all rounds, or a random sample of them if there are many.
  bool holds(const Symmetry& symmetry, Rank rank, Rank element) const {
    const Rank image = symmetry.moved(rank, element);
    Tags tags;
    std::mt19937_64 random(rank);
    for (std::uint32_t i = 0; i < std::min(rounds_, kMaxRounds); ++i) {
      const auto round = rounds_ <= kMaxRounds ? i : static_cast<std::uint32_t>(random() % rounds_);
      Steps mine(rank), theirs(image);
      algorithm_.emit(problem_, rank, round, mine);
      algorithm_.emit(problem_, image, round, theirs);
      for (std::size_t k = 0; k < mine.size(); ++k) seen_ += mine[k].sources.size() + mine[k].targets.size();
      if (!alike(mine, theirs, symmetry, element, tags) || !routes_hold(mine, symmetry, element)) return false;
    }
    return true;
  }

  bool routes_hold(const Steps& steps, const Symmetry& symmetry, Rank element) const {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (const std::span<const Operand> side : {steps[i].sources, steps[i].targets}) {
        for (const Operand& operand : side) {
          if (operand.peer == steps.self()) continue;
          const auto there = network_.route(steps.self(), operand.peer);
          const auto image =
              network_.route(symmetry.moved(steps.self(), element), symmetry.moved(operand.peer, element));
          if (!there.ok() || !image.ok() || !alike(network_, there.value(), image.value())) return false;
        }
      }
    }
    return true;
  }

  const Algorithm& algorithm_;
  const Problem& problem_;
  const Network& network_;
  std::uint32_t rounds_;
  mutable std::uint64_t seen_ = 0;  // Operands.
};

std::vector<Symmetry::Axis> axes(Rank size, Rank stride) {
  using Moves = Symmetry::Moves;
  std::vector<Symmetry::Axis> all;
  if (size > 1) all.push_back({Moves::rotate, size, 1});
  if (size > 1 && std::has_single_bit(size)) all.push_back({Moves::exchange, size, 1});
  if (stride > 1 && stride < size && size % stride == 0) all.push_back({Moves::rotate, size, stride});
  all.push_back({Moves::none, size, 1});
  return all;
}

}  // namespace

std::string describe(const Symmetry& symmetry) {
  return std::to_string(symmetry.classes()) + " of " + std::to_string(symmetry.ranks()) +
         " ranks, each for all ranks that behave alike";
}

Symmetry no_symmetry(const Network& network) {
  const Rank places = network.ranks_per_host();
  return {.hosts = {.size = network.ranks() / places}, .places = {.size = places}};
}

std::vector<Symmetry> symmetries_of(const Algorithm& algorithm, const Problem& problem, const Network& network) {
  const Symmetry none = no_symmetry(network);
  if (!network.uniform() || has_root(problem.collective)) return {none};
  std::vector<Symmetry> candidates;
  std::vector<Symmetry::Axis> of_hosts = axes(none.hosts.size, network.cluster().hosts_per_leaf);
  const Rank domain = network.hosts_per_nvlink_domain();
  if (domain > 1 && domain < none.hosts.size) of_hosts.push_back({Symmetry::Moves::rotate, none.hosts.size, domain});
  for (const Symmetry::Axis& hosts : of_hosts)
    for (const Symmetry::Axis& places : axes(none.places.size, 1)) candidates.push_back({hosts, places});
  const Judge judge(algorithm, problem, network);
  std::erase_if(candidates, [&](const Symmetry& candidate) { return !candidate.trivial() && !judge.holds(candidate); });
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Symmetry& a, const Symmetry& b) { return a.classes() < b.classes(); });
  return candidates;
}

}  // namespace tutti::simulator
