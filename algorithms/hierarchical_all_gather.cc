// Hierarchical all-gather: each block is sent once to each other host, to the rank at its owner's position, and
// forwarded inside that host. There are k rounds. In round d, hosts receive from the d-th host before them, so no two
// send to the same one. Each rank sends its block to k-1 hosts and forwards k blocks to g-1 ranks. A host's link
// carries (k-1)/k S per direction, instead of g times as much. Latency: 2 alpha per block. Source: the multi-leader
// all-gather of Kandalla et al., "Designing multi-leader-based allgather algorithms for multi-core clusters", 2009;
// here every rank is a leader.
#include "algorithms/cost_law.h"
#include "algorithms/host_map.h"

namespace tutti {
namespace {

class Hierarchical : public EntryOverHosts {
 public:
  Hierarchical()
      : EntryOverHosts(Collective::all_gather, "hierarchical",
                       "each block once to each other host, forwarded inside it") {}

  Shape shape(const Problem& problem) const override {
    return {.rounds = static_cast<std::uint32_t>(problem.groups[0].size()), .stages = {0}};
  }

  CostLaw cost_law(const Problem& problem) const override { return with_agents(problem, Agents::forward); }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const HostMap map(problem);
    const Rank hosts = map.hosts(), here = map.host_of(self);
    const Rank from = (here + hosts - round) % hosts;  // Host whose blocks arrive in this round.
    if (round > 0) steps.send(input(0), map.agent(self, (here + round) % hosts));
    for (Rank block = map.first(from); block < map.end(from); ++block) {
      if (map.agent(block, here) == self) forward(problem, map, block, steps);
    }
    for (Rank block = map.first(from); block < map.end(from); ++block) {
      const Rank agent = map.agent(block, here);
      if (agent != self) steps.recv(agent, output(block));
    }
  }

 private:
  // One step stores the block to this rank's output and sends it to all other ranks of the host.
  static void forward(const Problem& problem, const HostMap& map, Rank block, Steps& steps) {
    const Rank self = steps.self(), here = map.host_of(self);
    const Operand source = block == self ? input(0) : lane(block, 1);
    std::vector<Operand> targets;
    if (block != self || !problem.in_place) targets.push_back(output(block));
    for (Rank i = 1; i < map.size(here); ++i)
      targets.push_back(lane(map.first(here) + (self - map.first(here) + i) % map.size(here), 1));
    if (!targets.empty()) steps.add({&source, 1}, targets);
  }
};

}  // namespace

const Algorithm& hierarchical_all_gather() { return instance_of<Hierarchical>(); }

}  // namespace tutti
