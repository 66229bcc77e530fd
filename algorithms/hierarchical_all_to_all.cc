// Hierarchical all-to-all for hosts of equal size. The ranks of a host first exchange blocks by the position of the
// receiver. Each rank then sends one message of g blocks to the rank at its own position on every other host. This
// takes k-1 messages across instead of n-g. Latency: 2 alpha; each block moves twice. Messages are received one round
// after they are sent, and a chunk is between hosts while others are inside. Source: Bruck et al., "Efficient
// algorithms for all-to-all communications in multiport message-passing systems", 1997, with the host size as radix.
#include "algorithms/cost_law.h"
#include "algorithms/host_map.h"

namespace tutti {
namespace {

class Hierarchical : public EntryOverHosts {
 public:
  Hierarchical()
      : EntryOverHosts(Collective::all_to_all, "hierarchical",
                       "exchange inside hosts of equal size, then one message per host") {}

  bool supports(const Problem& problem) const override {
    if (!EntryOverHosts::supports(problem)) return false;
    const HostMap map(problem);
    return map.smallest() * map.hosts() == problem.ranks;
  }

  // Scratch layout: [sender's position in this host][receiver's host].
  Shape shape(const Problem& problem) const override {
    return {.scratch = problem.ranks, .rounds = 3, .stages = {0, 1, 2}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const HostMap map(problem);
    const double hosts = map.hosts(), size = map.smallest();
    CostLaw cost_law;
    cost_law.levels[0] = {.sent = (size - 1) * hosts, .received = (size - 1) * hosts, .messages = 2 * (size - 1)};
    cost_law.levels[1] = {.depth = 1,
                          .chain = size,
                          .sent = (hosts - 1) * size,
                          .received = (hosts - 1) * size,
                          .messages = 2 * (hosts - 1),
                          .between = (hosts - 1) * size * size};
    if (size > 1) cost_law.levels[0].depth = 1;
    cost_law.levels[0].chain = cost_law.levels[0].depth * hosts;
    cost_law.copied = hosts + size;
    cost_law.longest = std::max(size, size > 1 ? hosts : 0);
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const HostMap map(problem);
    const Rank hosts = map.hosts(), size = map.smallest(), here = map.host_of(self), local = self - map.first(here);
    if (round == 0) {
      for (Rank i = 1; i < size; ++i) {
        const Rank to = (local + i) % size;
        steps.send(strided(input(to, hosts), 1, size), map.first(here) + to);
      }
      steps.copy(strided(input(local, hosts), 1, size), scratch(local * hosts, hosts));
      return;
    }
    if (round == 1) {
      for (Rank i = 1; i < size; ++i) {
        const Rank from = (local + size - i) % size;
        steps.recv(map.first(here) + from, scratch(from * hosts, hosts));
      }
      for (Rank i = 1; i < hosts; ++i) {
        const Rank to = (here + i) % hosts;
        steps.send(strided(scratch(to, size), 1, hosts), map.first(to) + local);
      }
      steps.copy(strided(scratch(here, size), 1, hosts), output(map.first(here), size));
      return;
    }
    for (Rank i = 1; i < hosts; ++i) {
      const Rank from = (here + hosts - i) % hosts;
      steps.recv(map.first(from) + local, output(map.first(from), size));
    }
  }
};

}  // namespace

const Algorithm& hierarchical_all_to_all() { return instance_of<Hierarchical>(); }

}  // namespace tutti
