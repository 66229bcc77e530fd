// All-reduce between hosts of equal sizes whose switches add and multicast. In five stages, which overlap across
// chunks, each rank
//   0  copies its input into its scratch;
//   1  adds its shard over the scratch of all ranks of its host, and sends each other host its part of the sum, to the
//      rank at the same position;
//   2  adds its host's part over all hosts, and sends the result back to them;
//   3  receives the other results, and stores its shard into the scratch of all ranks of its host;
//   4  copies the other shards to its output.
// Stages 1 and 4 begin with the signals of all ranks of the host. A rank stores only units that it alone has read, so
// that stage 3 needs none. Messages of both directions share a lane.
// Cost of k hosts of g ranks, with switches: (1 + 1/g) S beta in each direction of a port of the switches, and two
// copies of S; 2(k-1)/k S/g beta between hosts. Two flag rounds and two messages.
//
// Unit s k + h is the part of shard s that host h adds. Scratch has the units of a block.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class HostStaged : public Entry<Algorithm> {
 public:
  HostStaged()
      : Entry(Collective::all_reduce, "host_staged",
              "switches add and multicast inside hosts, parts of sums directly between hosts") {}

  bool supports(const Problem& problem) const override {
    return Entry::supports(problem) && has_hosts(problem) && HostMap(problem).even();
  }

  bool supports_compression(const Problem&) const override { return false; }

  Shape shape(const Problem& problem) const override {
    return {.units = problem.ranks, .scratch = problem.ranks, .rounds = 5, .stages = {0, 1, 2, 3, 4}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const HostMap map(problem);
    const double g = map.smallest(), k = map.hosts();
    const double inside = 1 - 1 / g, between = (k - 1) / (g * k);
    CostLaw cost_law =
        in_peers_memory({.collective = Collective::all_reduce, .ranks = map.smallest(), .groups = {}}, inside, inside);
    cost_law.levels[1] = {.depth = 2,
                          .chain = 2 / (g * k),
                          .sent = 2 * between,
                          .received = 2 * between,
                          .messages = 4 * (k - 1),
                          .between = 2 * (k - 1) / k};
    cost_law.folded = inside + between;
    cost_law.copied = 1 + inside;
    cost_law.longest = 1 / (g * k);
    cost_law.units = problem.ranks;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Place place(problem, self);
    switch (round) {
      case 0: return place.copy_in(steps);
      case 1: return place.add_inside(steps);
      case 2: return place.add_between(steps);
      case 3: return place.store(steps);
      default: return place.copy_out(steps);
    }
  }

 private:
  // A rank's host, and its position there, which is that of its shard.
  class Place {
   public:
    Place(const Problem& problem, Rank self)
        : map_(problem),
          host_(map_.host_of(self)),
          position_(self - map_.first(host_)),
          hosts_(map_.hosts()),
          size_(map_.smallest()) {
      for (Rank i = 1; i < size_; ++i) flags_.push_back(flag(map_.first(host_) + (position_ + i) % size_));
    }

    void copy_in(Steps& steps) const {
      std::vector<Operand> targets = {scratch(0, size_ * hosts_)};
      targets.insert(targets.end(), flags_.begin(), flags_.end());
      const Operand source = input(0, size_ * hosts_);
      steps.add({&source, 1}, targets);
    }

    void add_inside(Steps& steps) const {
      std::vector<Operand> sources = flags_;
      sources.push_back(all_of_host(shard(Space::scratch)));
      const Operand target = shard(Space::output);
      steps.add(sources, {&target, 1});
      for (Rank i = 1; i < hosts_; ++i) steps.send(output(part_of(after(i))), peer_on(after(i)));
    }

    void add_between(Steps& steps) const {
      std::vector<Operand> sources, targets = {output(part_of(host_))};
      for (Rank host = 0; host < hosts_; ++host)
        sources.push_back(host == host_ ? output(part_of(host_)) : lane(peer_on(host), 1));
      for (Rank i = 1; i < hosts_; ++i) targets.push_back(lane(peer_on(after(i)), 1));
      steps.add(sources, targets, Fold::complete);
    }

    void store(Steps& steps) const {
      for (Rank i = 1; i < hosts_; ++i) steps.recv(peer_on(before(i)), output(part_of(before(i))));
      std::vector<Operand> targets = {all_of_host(shard(Space::scratch))};
      targets.insert(targets.end(), flags_.begin(), flags_.end());
      const Operand source = shard(Space::output);
      steps.add({&source, 1}, targets);
    }

    void copy_out(Steps& steps) const {
      for (Rank i = 1; i < size_; ++i) {
        const std::uint32_t first = (position_ + i) % size_ * hosts_;
        std::vector<Operand> sources;
        if (i == 1) sources = flags_;
        sources.push_back(scratch(first, hosts_));
        const Operand target = output(first, hosts_);
        steps.add(sources, {&target, 1});
      }
    }

   private:
    Operand shard(Space space) const { return units(space, position_ * hosts_, hosts_); }
    std::uint32_t part_of(Rank host) const { return position_ * hosts_ + host; }
    Rank peer_on(Rank host) const { return map_.first(host) + position_; }
    Rank after(Rank i) const { return (host_ + i) % hosts_; }
    Rank before(Rank i) const { return (host_ + hosts_ - i) % hosts_; }

    HostMap map_;
    Rank host_, position_, hosts_, size_;
    std::vector<Operand> flags_;  // One per other rank of the host, in ring order from the next one on.
  };
};

}  // namespace

const Algorithm& host_staged_all_reduce() { return instance_of<HostStaged>(); }

}  // namespace tutti
