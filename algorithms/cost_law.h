// Cost of algorithms that ignore hosts: how their messages are distributed over the links inside and between hosts.
// Exact for one host. For several hosts, an upper bound where the cost depends on which peers share a rank's host.
//
// Symbols of the cost laws in algorithms/*.cc:
// - alpha: time of one message in a chain of dependent messages (latency);
// - beta: time per byte of one link (inverse bandwidth), for the bytes that a rank sends unless stated otherwise;
// - n: number of ranks; k: number of hosts; g: ranks per host;
// - S: bytes of the largest buffer of the call.
#pragma once

#include <span>
#include <vector>

#include "algorithms/host_map.h"
#include "src/plan/cost_law.h"
#include "src/plan/problem.h"

namespace tutti {

// at_once(): one block to and from each of `others` ranks, all concurrently. in_sequence(): the same in `rounds`
// rounds, each of which depends on the preceding one.
Traffic at_once(double others);
Traffic in_sequence(double rounds, double others);

// Every rank exchanges the same amount with each other rank. `own` is the total of one rank.
CostLaw with_all(const Problem& problem, const Traffic& own);

// The root exchanges the same amount with each other rank. `total` is the root's.
CostLaw with_root(const Problem& problem, const Traffic& total);

// Each rank forwards to the next: around a ring, or along a chain.
enum class PipelineKind : std::uint8_t { ring, chain };
CostLaw with_pipeline(const Problem& problem, const Traffic& own, PipelineKind kind);

// One exchange per round at distances 1, 2, 4, ...; round i has the traffic rounds[i] and depends on the preceding one.
// modulo: the peer is rank + distance modulo n. by_bits: the peer's number differs in one bit, so that the
// first rounds stay within aligned hosts.
enum class Partners : std::uint8_t { modulo, by_bits };
struct RoundTraffic {
  double sent = 0, received = 0;  // Blocks.
  double messages = 2;
};
CostLaw with_distances(const Problem& problem, std::span<const RoundTraffic> rounds, Partners partners);
// Rounds of a gather by distances, for any number of ranks. A round moves min(d, n - d) blocks at distance d.
std::vector<RoundTraffic> rounds_by_distance(Rank ranks);
// Rounds of halving() for the rank that receives from two peers whenever the group size is odd.
std::vector<RoundTraffic> rounds_by_halves(Rank ranks);

// Communication along trees, whose edges have no relation to hosts.
CostLaw with_arbitrary_ranks(const Problem& problem, const Traffic& own);

// Exchange by HostMap's agents: one round per host inside hosts. Between hosts, the messages depend on each other in a
// ring only. A ring of sums is rounded more often.
enum class Agents : std::uint8_t { forward, sum };
CostLaw with_agents(const Problem& problem, Agents agents, HostRoute route);

// Access to peers' memory: each rank exchanges a flag with every other rank at entry and exit.
CostLaw in_peers_memory(const Problem& problem, double sent, double received);

}  // namespace tutti
