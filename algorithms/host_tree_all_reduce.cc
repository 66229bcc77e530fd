// All-reduce between hosts of equal sizes over two trees of hosts. The ranks of a host sum their inputs, a shard each.
// Each rank passes both halves of its shard up the trees to the ranks at its position, which add theirs. The results
// return the same way, and each host exchanges its shards. Every hop is a round of its own and a stage, so that chunks
// overlap along the whole path. Messages between hosts have the same length for any number of hosts. Source:
// two_trees.h. For k hosts of g ranks, when chunks are pipelined:
//   host_tree    Ranks of a host exchange messages: (2 + 2 log2(k)) alpha + 2 (g-1)/g S beta inside hosts, 2 S/g beta
//                between them.
//   tree_staged  Switches add the scratch of all ranks of a host, and multicast the results to it (NCCL: NVLSTree):
//                two flag rounds and 2 log2(k) alpha; (1 + 1/g) S beta in each direction of a port of the switches, and
//                two copies of S; 2 S/g beta between hosts.
//
// Unit 2 s + h is half h of shard s. In scratch, the contributions precede the results.
#include <numeric>

#include "algorithms/cost_law.h"
#include "algorithms/host_place.h"
#include "algorithms/two_trees.h"

namespace tutti {
namespace {

constexpr std::uint16_t kHalves = TwoTrees::kHalves;

class HostTree : public EntryOverEqualHosts {
 public:
  HostTree(const char* name, const char* summary, PeerAccess access)
      : EntryOverEqualHosts(Collective::all_reduce, name, summary), access_(access) {}

  bool supports_compression(const Problem&) const override { return access_ == PeerAccess::each_peer; }

  // Inputs, sums of hosts and `depth` hops up, as many down, results.
  Shape shape(const Problem& problem) const override {
    const HostMap map(problem);
    const std::uint32_t units = kHalves * map.smallest();
    std::vector<std::uint32_t> stages(2 * TwoTrees(map.hosts()).depth() + 3);
    std::iota(stages.begin(), stages.end(), 0U);
    return {.units = units,
            .scratch = access_ == PeerAccess::switches ? 2 * units : 0,
            .rounds = static_cast<std::uint32_t>(stages.size()),
            .stages = stages};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const HostMap map(problem);
    const double g = map.smallest(), k = map.hosts(), others = g - 1, inside = others / g;
    const double children = k > 3 ? 2 : k > 2 ? 1 : 0;  // Maximum for hosts other than the root.
    const double half = 1 / (kHalves * g);
    CostLaw cost_law;
    if (access_ == PeerAccess::switches) {
      const Problem of_host = {.collective = Collective::all_reduce, .ranks = map.smallest(), .groups = {}};
      cost_law = in_peers_memory(of_host, inside, inside);
      cost_law.copied = 1 + inside;
    } else {
      cost_law.levels[0] = {.depth = g > 1 ? 2.0 : 0,
                            .chain = g > 1 ? 2 / g : 0,
                            .sent = 2 * inside,
                            .received = 2 * inside,
                            .messages = 4 * kHalves * others};
    }
    const double depth = 2.0 * TwoTrees(map.hosts()).depth();
    cost_law.levels[1] = {.depth = depth,
                          .chain = depth * half,
                          .sent = (2 + children) * half,
                          .received = (2 + children) * half,
                          .messages = 2 * (2 + children),
                          .between = (2 + children) / kHalves};
    cost_law.folded = inside + children * half;
    cost_law.longest = half;
    cost_law.rounded = inside + mean_depth(map.hosts()) + 1;
    cost_law.units = kHalves * static_cast<std::uint64_t>(map.smallest());
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Place place(problem, self);
    const Rank depth = place.trees.depth();
    const bool by_switches = access_ == PeerAccess::switches;
    if (round == 0) by_switches ? place.copy_in(steps) : place.send_inputs(steps);
    if (round == 1) by_switches ? place.add_scratch(steps) : place.add_inputs(steps);
    for (std::uint16_t half = 0; half < kHalves; ++half) {
      const Rank hops = place.trees.depth_of(place.host, half);
      if (round == 1 + depth - hops) place.pass_up(half, steps);
      if (round == 1 + depth + hops) place.pass_down(half, steps);
    }
    if (round == 1 + 2 * depth) by_switches ? place.store(steps) : place.send_results(steps);
    if (round == 2 + 2 * depth) by_switches ? place.copy_out(steps) : place.receive_results(steps);
  }

 private:
  // The position of a rank on its host is that of its shard.
  struct Place : HostPlace {
    Place(const Problem& problem, Rank own) : HostPlace(problem, own), self(own), trees(hosts) {}

    void copy_in(Steps& steps) const {
      std::vector<Operand> targets = {scratch(0, kHalves * size)};
      targets.insert(targets.end(), flags.begin(), flags.end());
      const Operand source = input(0, kHalves * size);
      steps.add({&source, 1}, targets);
    }

    void add_scratch(Steps& steps) const {
      std::vector<Operand> sources = flags;
      sources.push_back(all_of_host(scratch(unit(0), kHalves)));
      const Operand target = output(unit(0), kHalves);
      steps.add(sources, {&target, 1});
    }

    // Halves are messages of their own, as long as those between hosts.
    void send_inputs(Steps& steps) const {
      for (Rank i = 1; i < size; ++i)
        for (std::uint16_t half = 0; half < kHalves; ++half) steps.send(input(unit(i, half)), near(i));
    }

    void add_inputs(Steps& steps) const {
      for (std::uint16_t half = 0; half < kHalves; ++half) {
        std::vector<Operand> sources;
        for (Rank rank = map.first(host); rank < map.end(host); ++rank)
          sources.push_back(rank == self ? input(unit(0, half)) : lane(rank, 1));
        const Operand target = output(unit(0, half));
        steps.add(sources, {&target, 1});
      }
    }

    // The root starts the way down at once.
    void pass_up(std::uint16_t half, Steps& steps) const {
      const TreeNode node = trees.node(host, half);
      const std::vector<Operand> children = lanes_to_children(node, half);
      std::vector<Operand> sources = children, targets;
      sources.push_back(output(unit(0, half)));
      if (node.parent) {
        targets.push_back(lane(rank_on(*node.parent), 1, half));
      } else {
        targets = children;
        targets.push_back(output(unit(0, half)));
      }
      steps.add(sources, targets, node.parent ? Fold::partial : Fold::complete);
    }

    void pass_down(std::uint16_t half, Steps& steps) const {
      const TreeNode node = trees.node(host, half);
      if (!node.parent) return;
      std::vector<Operand> targets = lanes_to_children(node, half);
      targets.push_back(output(unit(0, half)));
      const Operand source = lane(rank_on(*node.parent), 1, half);
      steps.add({&source, 1}, targets);
    }

    void store(Steps& steps) const {
      std::vector<Operand> targets = {all_of_host(scratch(kHalves * size + unit(0), kHalves))};
      targets.insert(targets.end(), flags.begin(), flags.end());
      const Operand source = output(unit(0), kHalves);
      steps.add({&source, 1}, targets);
    }

    void copy_out(Steps& steps) const {
      for (Rank i = 1; i < size; ++i) {
        std::vector<Operand> sources;
        if (i == 1) sources = flags;
        sources.push_back(scratch(kHalves * size + unit(i), kHalves));
        const Operand target = output(unit(i), kHalves);
        steps.add(sources, {&target, 1});
      }
    }

    void send_results(Steps& steps) const {
      for (Rank i = 1; i < size; ++i)
        for (std::uint16_t half = 0; half < kHalves; ++half) steps.send(output(unit(0, half)), near(i), 1);
    }

    void receive_results(Steps& steps) const {
      for (Rank i = 1; i < size; ++i)
        for (std::uint16_t half = 0; half < kHalves; ++half) steps.recv(near(i), output(unit(i, half)), 1);
    }

    // The i-th rank of this host after this one, in ring order, and a half of its shard.
    Rank near(Rank i) const { return map.first(host) + (position + i) % size; }
    std::uint32_t unit(Rank i, std::uint16_t half = 0) const { return kHalves * ((position + i) % size) + half; }

    std::vector<Operand> lanes_to_children(const TreeNode& node, std::uint16_t half) const {
      std::vector<Operand> lanes;
      for (const std::optional<Rank>& child : {node.below, node.above})
        if (child) lanes.push_back(lane(rank_on(*child), 1, half));
      return lanes;
    }

    Rank self;
    TwoTrees trees;
  };

  PeerAccess access_;
};

}  // namespace

const Algorithm& host_tree_all_reduce() {
  static const HostTree algorithm("host_tree", "sums inside hosts, each half through its own tree of hosts, 2 S/g",
                                  PeerAccess::each_peer);
  return algorithm;
}

const Algorithm& tree_staged_all_reduce() {
  static const HostTree algorithm("tree_staged",
                                  "switches add and multicast inside hosts, each half through its own tree of hosts",
                                  PeerAccess::switches);
  return algorithm;
}

}  // namespace tutti
