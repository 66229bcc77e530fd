// All-gather in a ring of hosts: each block passes all hosts in turn, at the position of its owner, and is forwarded
// inside each host. There are k rounds. A rank sends to one rank of the next host only, where the hierarchical
// all-gather sends to k-1 hosts. A host's link carries (k-1)/k S per direction. Latency: k alpha, the blocks of a round
// beside each other. Source: ring all-gather (P. Patarasuk, X. Yuan, 2009) with one ring per position on the hosts.
#include "algorithms/cost_law.h"
#include "algorithms/host_map.h"

namespace tutti {
namespace {

class HostRing : public EntryOverHosts {
 public:
  HostRing()
      : EntryOverHosts(Collective::all_gather, "host_ring",
                       "each block through a ring of hosts, forwarded inside each") {}

  Shape shape(const Problem& problem) const override {
    return {.rounds = static_cast<std::uint32_t>(problem.groups[0].size()), .stages = {0}};
  }

  CostLaw cost_law(const Problem& problem) const override { return with_agents(problem, Agents::forward); }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const HostMap map(problem);
    const Rank hosts = map.hosts(), here = map.host_of(self);
    const Rank from = (here + hosts - round) % hosts;  // Host whose blocks arrive in this round.
    for (Rank block = map.first(from); block < map.end(from); ++block) {
      if (map.agent(block, here) == self) forward(problem, map, block, round + 1 < hosts, steps);
    }
    for (Rank block = map.first(from); block < map.end(from); ++block) {
      const Rank agent = map.agent(block, here);
      if (agent != self) steps.recv(agent, output(block));
    }
  }

 private:
  // One step stores the block to this rank's output, and sends it to the next host and to all other ranks of this one.
  static void forward(const Problem& problem, const HostMap& map, Rank block, bool passes_on, Steps& steps) {
    const Rank self = steps.self(), hosts = map.hosts(), here = map.host_of(self);
    const Operand source = block == self ? input(0) : lane(map.agent(block, (here + hosts - 1) % hosts), 1);
    std::vector<Operand> targets;
    if (block != self || !problem.in_place) targets.push_back(output(block));
    if (passes_on) targets.push_back(lane(map.agent(block, (here + 1) % hosts), 1));
    for (Rank i = 1; i < map.size(here); ++i)
      targets.push_back(lane(map.first(here) + (self - map.first(here) + i) % map.size(here), 1));
    if (!targets.empty()) steps.add({&source, 1}, targets);
  }
};

}  // namespace

const Algorithm& host_ring_all_gather() { return instance_of<HostRing>(); }

}  // namespace tutti
