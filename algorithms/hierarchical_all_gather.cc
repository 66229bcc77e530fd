// All-gather by hosts: each block is sent once to each other host, to the rank at its owner's position, and forwarded
// inside that host. A host's link carries (k-1)/k S per direction, instead of g times as much. On hosts of equal sizes,
// messages are received one round after they are sent, and a chunk is between hosts while others are inside. A ring has
// one stage less, so that both parts of an all-reduce can share their lanes.
//   hierarchical  Each rank first sends its block to k-1 hosts, the next one first, so that no two ranks begin with the
//                 same peer. Latency: (k/2 + 1) alpha, of which one is between hosts. Source: the multi-leader
//                 all-gather of Kandalla et al., "Designing multi-leader-based allgather algorithms for multi-core
//                 clusters", 2009; here every rank is a leader.
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
    const HostMap map(problem);
    if (!map.even()) return {.rounds = map.hosts(), .stages = {0}};
    if (route_ == HostRoute::ring) return {.rounds = map.hosts() + 1, .stages = {0, 1}};
    return {.rounds = map.hosts() + 1, .stages = {0, 1, 2}};
  }

  CostLaw cost_law(const Problem& problem) const override { return with_agents(problem, Agents::forward, route_); }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const HostMap map(problem);
    const Rank hosts = map.hosts(), here = map.host_of(self);
    if (route_ == HostRoute::direct && round == 0) {
      for (Rank distance = 1; distance < hosts; ++distance)
        steps.send(input(0), map.agent(self, (here + distance) % hosts));
    }
    if (round < hosts) {
      const Rank from = (here + hosts - round) % hosts;
      for (Rank block = map.first(from); block < map.end(from); ++block) {
        if (map.agent(block, here) == self) forward(problem, map, block, round, steps);
      }
    }
    const Rank lag = map.even() ? 1 : 0;
    if (round < lag) return;
    const Rank sent = round - lag, from = (here + hosts - sent) % hosts;
    for (Rank block = map.first(from); block < map.end(from); ++block) {
      const Rank agent = map.agent(block, here);
      if (agent != self) steps.recv(agent, output(block), tag(map, sent));
    }
  }

 private:
  // Tag of messages that are sent in this round. Messages that are received in the stage in which they are sent have a
  // lane of their own: they overtake messages of later chunks, which are received in the next stage.
  std::uint16_t tag(const HostMap& map, Rank round) const {
    const Rank last_stage = route_ == HostRoute::ring ? 1 : 2;
    return map.even() && round >= last_stage ? 1 : 0;
  }

  // One step stores the block to this rank's output, and sends it to the next host of a ring and to all other ranks of
  // this host.
  void forward(const Problem& problem, const HostMap& map, Rank block, std::uint32_t round, Steps& steps) const {
    const Rank self = steps.self(), hosts = map.hosts(), here = map.host_of(self);
    const bool ring = route_ == HostRoute::ring;
    const Rank sender = ring ? map.agent(block, (here + hosts - 1) % hosts) : block;
    const std::uint16_t sent = tag(map, round), received = ring && round > 0 ? tag(map, round - 1) : 0;
    const Operand source = block == self ? input(0) : lane(sender, 1, received);
    std::vector<Operand> targets;
    if (block != self || !problem.in_place) targets.push_back(output(block));
    if (ring && round + 1 < hosts) targets.push_back(lane(map.agent(block, (here + 1) % hosts), 1, sent));
    for (Rank i = 1; i < map.size(here); ++i)
      targets.push_back(lane(map.first(here) + (self - map.first(here) + i) % map.size(here), 1, sent));
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
