// Reduce-scatter by hosts: the blocks of a host are summed by the rank at their owner's position, and only sums are
// sent between hosts. A host's link carries (k-1)/k S per direction, instead of g times as much. On hosts of equal
// sizes, messages are summed one round after they are sent, and a chunk is between hosts while others are inside. It is
// the all-gather of hierarchical_all_gather.cc in reverse.
//   hierarchical  Hosts sum for the next host, then for the one after it, so that no two send to the same one, and in
//                 the last round for themselves. Sums need no memory, since they are sent directly. Latency: (k/2 + 1)
//                 alpha, of which one is between hosts.
//   host_ring     The sum of a block passes all hosts in turn, each of which adds its own, and ends at the owner.
//                 A rank sends to one rank of the next host only. Source: ring reduce-scatter (P. Patarasuk, X. Yuan,
//                 2009) with one ring per position on the hosts. Latency: k alpha.
#include "algorithms/cost_law.h"
#include "algorithms/host_map.h"

namespace tutti {
namespace {

class Hierarchical : public EntryOverHosts {
 public:
  Hierarchical(const char* name, const char* summary, HostRoute route)
      : EntryOverHosts(Collective::reduce_scatter, name, summary), route_(route) {}

  Shape shape(const Problem& problem) const override {
    const HostMap map(problem);
    if (!map.even()) return {.rounds = map.hosts(), .stages = {0}};
    if (route_ == HostRoute::ring) return {.rounds = map.hosts() + 1, .stages = {0, map.hosts()}};
    return {.rounds = map.hosts() + 1, .stages = {0, map.hosts() - 1, map.hosts()}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    CostLaw cost_law = with_agents(problem, Agents::sum, route_);
    if (route_ == HostRoute::ring) cost_law.rounded = roundings_in_ring(problem);
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const HostMap map(problem);
    const Rank hosts = map.hosts(), here = map.host_of(self);
    if (round < hosts) {
      const Rank to = owners_in(round, here, hosts);
      for (Rank block = map.first(to); block < map.end(to); ++block) {
        const Rank agent = map.agent(block, here);
        if (agent != self) steps.send(input(block), agent, tag(map, round));
      }
    }
    const Rank lag = map.even() ? 1 : 0;
    if (round < lag) return;
    const Rank sent = round - lag, to = owners_in(sent, here, hosts);
    for (Rank block = map.first(to); block < map.end(to); ++block) {
      if (map.agent(block, here) == self) sum(map, block, sent, steps);
    }
  }

 private:
  // Host of the blocks that are sent inside hosts in a round.
  Rank owners_in(Rank round, Rank here, Rank hosts) const {
    return (route_ == HostRoute::ring ? here + hosts - 1 - round : here + round + 1) % hosts;
  }

  // Tag of messages for sums, by the round in which the ranks of a host send. Messages that are received in the first
  // stage, in which they are sent, have a lane of their own: they overtake messages of earlier chunks, which are
  // received in the next stage.
  std::uint16_t tag(const HostMap& map, Rank round) const {
    const Rank first_stage = map.hosts() - (route_ == HostRoute::ring ? 1 : 2);  // Rounds whose messages it receives.
    return map.even() && round < first_stage ? 1 : 0;
  }

  // The ranks of a host send to an agent, each term once, and a sum is rounded on its way to each next host. The mean
  // over the blocks' hosts.
  static double roundings_in_ring(const Problem& problem) {
    const HostMap map(problem);
    const Rank hosts = map.hosts();
    double terms = 0;
    for (Rank home = 0; home < hosts; ++home) {
      double sum = 0;  // Terms of a sum for this host.
      for (Rank passed = 1; passed < hosts; ++passed) {
        sum += map.size((home + passed) % hosts);
        terms += sum / hosts;
      }
    }
    return (problem.ranks - hosts + terms) / problem.ranks;
  }

  // Sums the block over this host in rank order: those that were sent inside the host in this round. In a ring,
  // includes the sum of the hosts before it, and sends the result to the next host; otherwise to the block's owner.
  // Finally the owner is this rank, which includes the sums of all other hosts.
  void sum(const HostMap& map, Rank block, Rank round, Steps& steps) const {
    const Rank self = steps.self(), hosts = map.hosts(), here = map.host_of(self);
    const bool ring = route_ == HostRoute::ring, complete = round + 1 == hosts;
    const auto agent_before = [&](Rank distance) { return map.agent(block, (here + hosts - distance) % hosts); };
    std::vector<Operand> sources;
    if (ring && round > 0) sources.push_back(lane(agent_before(1), 1, tag(map, round)));
    for (Rank rank = map.first(here); rank < map.end(here); ++rank)
      sources.push_back(rank == self ? input(block) : lane(rank, 1, tag(map, round)));
    for (Rank distance = 1; distance < hosts && complete && !ring; ++distance)
      sources.push_back(lane(agent_before(distance), 1));
    const Operand target = complete ? output(0)
                           : ring   ? lane(map.agent(block, (here + 1) % hosts), 1, tag(map, round + 1))
                                    : lane(block, 1);
    steps.add(sources, {&target, 1}, complete ? Fold::complete : Fold::partial);
  }

  HostRoute route_;
};

}  // namespace

const Algorithm& hierarchical_reduce_scatter() {
  static const Hierarchical algorithm("hierarchical", "sums inside hosts, only sums between hosts, (k-1)/k S per host",
                                      HostRoute::direct);
  return algorithm;
}

const Algorithm& host_ring_reduce_scatter() {
  static const Hierarchical algorithm("host_ring", "sums inside hosts, passed on through a ring of hosts",
                                      HostRoute::ring);
  return algorithm;
}

}  // namespace tutti
