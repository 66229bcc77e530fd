// Times of calls on a cluster that is described, cut as the library cuts them. `tutti simulate` and `tutti explain
// --topology` both use this model, so they print the same time for the same call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/tuner/candidates.h"
#include "tools/simulator/simulate.h"
#include "tools/tutti/ring_orders.h"
#include "tools/tutti/simulate_networks.h"

namespace tutti::tool {

// Limits of each candidate where many are compared.
inline constexpr std::uint64_t kMaxStepsOfMany = 2'000'000;
inline constexpr std::uint64_t kMaxEventsOfMany = 1'000'000;  // Unless the loop takes more to fill and to drain.
// Candidates with more events are left out, unless no candidate has fewer.
inline constexpr std::uint64_t kMaxEventsCompared = 4'000'000;

class CallModel {
 public:
  // `max_orders`: the maximum number of rank orders that rings use in turn.
  CallModel(Networks networks, const simulator::Costs& costs, std::uint32_t max_orders);

  const simulator::Network& network() const { return networks_.own; }
  // Empty, or why flat algorithms do not use all ports of a host.
  const std::string& note() const { return networks_.note; }
  const simulator::Costs& costs() const { return costs_; }
  bool on_devices() const { return on_devices_; }
  bool only_rings() const { return rings_.only_rings; }
  bool has_orders(const Algorithm& algorithm) const;
  // True if some ranks communicate over the network between hosts.
  bool spans_network() const;
  // False for algorithms that access peers' memory where a network leads to some peers.
  bool can_map(const Algorithm& algorithm) const;

  // Makes an algorithm ready for calls. The model must outlive the result, in place. Fails as Simulation::make() does.
  Result<simulator::Simulation> prepare(const Algorithm& algorithm, const Problem& problem,
                                        simulator::Limits limits) const;

  // The query by which the library chooses for a call; `bytes` as nccl-tests count.
  Query query_of(const Problem& problem, double bytes) const;
  // The call as the library makes it after that choice.
  simulator::Call call_of(const Choice& choice, double bytes) const;

 private:
  Networks networks_;
  simulator::Costs costs_;
  bool on_devices_ = false;
  HostRings rings_;
};

// Sentences about the times of a cluster with several hosts; empty for one host.
std::vector<std::string> notes_on_hosts(const simulator::Network& network);

// Replaces the predicted times of candidates by simulated ones. Keeps the first, which is the library's choice, and
// sorts the others by their times. Candidates that take too long to simulate get the time 0 and go to the end.
Status simulate_candidates(const CallModel& model, const Query& query, std::vector<Candidate>& found);

}  // namespace tutti::tool
