// How the messages of algorithms that know no hosts fall on the links inside hosts and between them. Exact of one host;
// of several, an upper bound where it depends on which of a rank's partners are on its host.
#pragma once

#include <span>
#include <vector>

#include "src/plan/cost_law.h"
#include "src/plan/problem.h"

namespace tutti {

// A block to and from each of `others` ranks: all under way at once, or so many rounds, each after the one before.
Traffic at_once(double others);
Traffic in_turn(double rounds, double others);

// Every rank does alike with each other one. `own`: the totals of a rank.
CostLaw with_all(const Problem& problem, const Traffic& own);

// The root with each other rank. `total`: the root's.
CostLaw with_root(const Problem& problem, const Traffic& total);

// Each rank hands on to the next: all the way round, or from one end to the other.
enum class PipelineKind : std::uint8_t { ring, chain };
CostLaw with_pipeline(const Problem& problem, const Traffic& own, PipelineKind kind);

// With ranks at the distances 1, 2, 4, ..., the i-th as turns[i] says, each once the turn before is over: to rank r +
// d, round the end, or with that whose number differs in one bit, which leaves a host later.
enum class Partners : std::uint8_t { round_a_circle, by_bits };
struct RoundTraffic {
  double sent = 0, received = 0;  // Blocks.
  double messages = 2;
};
CostLaw with_distances(const Problem& problem, std::span<const RoundTraffic> turns, Partners partners);
// Of a gather by distances, whatever the number of ranks: as many blocks as ranks are within the distance, or behind
// it.
std::vector<RoundTraffic> rounds_by_distance(Rank ranks);
// Of halving(), of the rank that takes from two wherever a number of ranks is odd.
std::vector<RoundTraffic> rounds_by_halves(Rank ranks);

// Whose way depends on no host: up or down trees.
CostLaw with_anyone(const Problem& problem, const Traffic& own);

// Over hosts, by HostMap's agents: in turn with the hosts, of which each takes a round.
enum class Agents : std::uint8_t { hand_on, sum };
CostLaw with_agents(const Problem& problem, Agents agents);

// In peers' memory: a flag to and from each other rank when it comes, and when it goes.
CostLaw in_peers_memory(const Problem& problem, double sent, double received);

}  // namespace tutti
