// All-to-all between hosts of equal sizes, whose ranks collect blocks in each other's scratch. In four stages, which
// overlap across chunks, each rank
//   0  signals that its scratch may be written;
//   1  stores the blocks for each position of hosts to the scratch of its host's rank at this position, and signals;
//   2  copies the blocks for itself to its output, and sends each other host one message of the blocks that all ranks
//      of its host have for the rank at its position;
//   3  receives a message from each other host.
// Stages 1 and 2 begin with the signals of all ranks of the host. hierarchical sends messages inside hosts instead,
// with blocks for all hosts, whose length slots limit. Cost of k hosts of g ranks: (g-1) k blocks inside hosts, a copy
// of k blocks and of g, and (k-1) g blocks between hosts. Two flag rounds and one message. Source: Bruck et al., as for
// hierarchical.
//
// Scratch layout: [receiver's host][sender's position].
#include "algorithms/cost_law.h"
#include "algorithms/host_place.h"

namespace tutti {
namespace {

class HostStaged : public EntryOverEqualHosts {
 public:
  HostStaged()
      : EntryOverEqualHosts(Collective::all_to_all, "host_staged",
                            "ranks collect blocks in each other's scratch, then one message per host") {}

  Shape shape(const Problem& problem) const override {
    return {.scratch = problem.ranks, .rounds = 4, .stages = {0, 1, 2, 3}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const HostMap map(problem);
    const double g = map.smallest(), k = map.hosts();
    CostLaw cost_law =
        in_peers_memory({.collective = Collective::all_to_all, .ranks = map.smallest(), .groups = {}}, k * (g - 1), 0);
    cost_law.levels[1] = {.depth = 1,
                          .chain = g,
                          .sent = (k - 1) * g,
                          .received = (k - 1) * g,
                          .messages = 2 * (k - 1),
                          .between = (k - 1) * g * g};
    cost_law.copied = k + g;
    cost_law.longest = g;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const HostPlace place(problem, self);
    if (round == 0 && place.size > 1) steps.add({}, place.flags);
    if (round == 1) store_to_peers(place, self, steps);
    if (round == 2) send(place, steps);
    if (round < 3) return;
    for (Rank i = 1; i < place.hosts; ++i) {
      const Rank from = place.before(i);
      steps.recv(from, output(place.map.first(place.map.host_of(from)), place.size));
    }
  }

 private:
  static void store_to_peers(const HostPlace& place, Rank self, Steps& steps) {
    std::vector<Operand> sources = place.flags;
    for (Rank i = 1; i <= place.size; ++i) {
      const Rank position = (place.position + i) % place.size, peer = place.map.first(place.host) + position;
      for (Rank host = 0; host < place.hosts; ++host) {
        sources.push_back(input(place.map.first(host) + position));
        const Operand unit = scratch(host * place.size + place.position);
        std::vector<Operand> targets = {peer == self ? unit : at(peer, unit)};
        if (i == place.size && host + 1 == place.hosts)
          targets.insert(targets.end(), place.flags.begin(), place.flags.end());
        steps.add(sources, targets);
        sources.clear();
      }
    }
  }

  // The copy to the output comes first and awaits the flags: a thread block sends the units of several messages at
  // once, if their steps await none.
  static void send(const HostPlace& place, Steps& steps) {
    std::vector<Operand> sources = place.flags;
    for (Rank i = 0; i < place.hosts; ++i) {
      const Rank host = (place.host + i) % place.hosts;
      sources.push_back(scratch(host * place.size, place.size));
      const Operand target =
          host == place.host ? output(place.map.first(host), place.size) : lane(place.rank_on(host), place.size);
      steps.add(sources, {&target, 1});
      sources.clear();
    }
  }
};

}  // namespace

const Algorithm& host_staged_all_to_all() { return instance_of<HostStaged>(); }

}  // namespace tutti
