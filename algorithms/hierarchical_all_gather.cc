// All-gather by hosts: each block is sent once to each other host, to the rank at its owner's position, and forwarded
// inside that host. There are k rounds. A host's link carries (k-1)/k S per direction, instead of g times as much.
//   hierarchical  In round d, hosts receive from the d-th host before them, so no two send to the same one. Each rank
//                 sends its block to k-1 hosts. Latency: 2 alpha per block. Source: the multi-leader all-gather of
//                 Kandalla et al., "Designing multi-leader-based allgather algorithms for multi-core clusters", 2009;
//                 here every rank is a leader.
//   host_ring     Each block passes all hosts in turn. A rank sends to one rank of the next host only. Latency:
//                 k alpha, the blocks of a round beside each other. Source: ring all-gather (P. Patarasuk, X. Yuan,
//                 2009) with one ring per position on the hosts.
#include "algorithms/cost_law.h"
#include "algorithms/host_map.h"

namespace tutti {
namespace {

class Hierarchical : public EntryOverHosts {
 public:
  Hierarchical(const char* name, const char* summary, HostRoute route)
      : EntryOverHosts(Collective::all_gather, name, summary), route_(route) {}

  Shape shape(const Problem& problem) const override {
    return {.rounds = static_cast<std::uint32_t>(problem.groups[0].size()), .stages = {0}};
  }

  CostLaw cost_law(const Problem& problem) const override { return with_agents(problem, Agents::forward); }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const HostMap map(problem);
    const Rank hosts = map.hosts(), here = map.host_of(self);
    const Rank from = (here + hosts - round) % hosts;  // Host whose blocks arrive in this round.
    if (route_ == HostRoute::direct && round > 0) steps.send(input(0), map.agent(self, (here + round) % hosts));
    for (Rank block = map.first(from); block < map.end(from); ++block) {
      if (map.agent(block, here) == self) forward(problem, map, block, round, steps);
    }
    for (Rank block = map.first(from); block < map.end(from); ++block) {
      const Rank agent = map.agent(block, here);
      if (agent != self) steps.recv(agent, output(block));
    }
  }

 private:
  // One step stores the block to this rank's output, and sends it to the next host of a ring and to all other ranks of
  // this host.
  void forward(const Problem& problem, const HostMap& map, Rank block, std::uint32_t round, Steps& steps) const {
    const Rank self = steps.self(), hosts = map.hosts(), here = map.host_of(self);
    const bool ring = route_ == HostRoute::ring;
    const Rank sender = ring ? map.agent(block, (here + hosts - 1) % hosts) : block;
    const Operand source = block == self ? input(0) : lane(sender, 1);
    std::vector<Operand> targets;
    if (block != self || !problem.in_place) targets.push_back(output(block));
    if (ring && round + 1 < hosts) targets.push_back(lane(map.agent(block, (here + 1) % hosts), 1));
    for (Rank i = 1; i < map.size(here); ++i)
      targets.push_back(lane(map.first(here) + (self - map.first(here) + i) % map.size(here), 1));
    if (!targets.empty()) steps.add({&source, 1}, targets);
  }

  HostRoute route_;
};

}  // namespace

const Algorithm& hierarchical_all_gather() {
  static const Hierarchical algorithm("hierarchical", "each block once to each other host, forwarded inside it",
                                      HostRoute::direct);
  return algorithm;
}

const Algorithm& host_ring_all_gather() {
  static const Hierarchical algorithm("host_ring", "each block through a ring of hosts, forwarded inside each",
                                      HostRoute::ring);
  return algorithm;
}

}  // namespace tutti
