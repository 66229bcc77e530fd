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
#include "algorithms/host_place.h"

namespace tutti {
namespace {

class HostStaged : public EntryOverEqualHosts {
 public:
  HostStaged()
      : EntryOverEqualHosts(Collective::all_reduce, "host_staged",
                            "switches add and multicast inside hosts, parts of sums directly between hosts") {}

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
  // The position of a rank on its host is that of its shard.
  class Place : private HostPlace {
   public:
    using HostPlace::HostPlace;

    void copy_in(Steps& steps) const {
      std::vector<Operand> targets = {scratch(0, size * hosts)};
      targets.insert(targets.end(), flags.begin(), flags.end());
      const Operand source = input(0, size * hosts);
      steps.add({&source, 1}, targets);
    }

    void add_inside(Steps& steps) const {
      std::vector<Operand> sources = flags;
      sources.push_back(all_of_host(shard(Space::scratch)));
      const Operand target = shard(Space::output);
      steps.add(sources, {&target, 1});
      for (Rank i = 1; i < hosts; ++i) steps.send(output(part_of((host + i) % hosts)), after(i));
    }

    void add_between(Steps& steps) const {
      std::vector<Operand> sources, targets = {output(part_of(host))};
      for (Rank other = 0; other < hosts; ++other)
        sources.push_back(other == host ? output(part_of(host)) : lane(rank_on(other), 1));
      for (Rank i = 1; i < hosts; ++i) targets.push_back(lane(after(i), 1));
      steps.add(sources, targets, Fold::complete);
    }

    void store(Steps& steps) const {
      for (Rank i = 1; i < hosts; ++i) steps.recv(before(i), output(part_of((host + hosts - i) % hosts)));
      std::vector<Operand> targets = {all_of_host(shard(Space::scratch))};
      targets.insert(targets.end(), flags.begin(), flags.end());
      const Operand source = shard(Space::output);
      steps.add({&source, 1}, targets);
    }

    void copy_out(Steps& steps) const {
      for (Rank i = 1; i < size; ++i) {
        const std::uint32_t first = (position + i) % size * hosts;
        std::vector<Operand> sources;
        if (i == 1) sources = flags;
        sources.push_back(scratch(first, hosts));
        const Operand target = output(first, hosts);
        steps.add(sources, {&target, 1});
      }
    }

   private:
    Operand shard(Space space) const { return units(space, position * hosts, hosts); }
    std::uint32_t part_of(Rank other) const { return position * hosts + other; }  // `other`: a host.
  };
};

}  // namespace

const Algorithm& host_staged_all_reduce() { return instance_of<HostStaged>(); }

}  // namespace tutti
