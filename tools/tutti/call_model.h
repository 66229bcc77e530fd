// Times of calls on a described cluster, with the channels and chunks of the library. The commands simulate and explain
// (with --topology) both use this model, so they print the same time for the same call.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/communicator/peers/lane_budget.h"
#include "src/communicator/planning/rails.h"
#include "src/tuner/candidates.h"
#include "tools/simulator/simulate.h"
#include "tools/tutti/ring_orders.h"
#include "tools/tutti/simulate_networks.h"

namespace tutti::tool {

// Limits of each candidate if many are compared.
inline constexpr std::uint64_t kMaxStepsOfMany = 2'000'000;
inline constexpr std::uint64_t kMaxEventsOfMany = 1'000'000;  // More if the loop needs them to fill and drain.
// Candidates with more events are omitted, unless no candidate has fewer.
inline constexpr std::uint64_t kMaxEventsCompared = 4'000'000;
// `tutti explain` does not compare candidates of more ranks, which take minutes to simulate.
inline constexpr Rank kMaxRanksExplained = 16384;

class CallModel {
 public:
  // `max_orders`: the maximum number of rank orders that rings use round-robin.
  CallModel(Networks networks, const simulator::Costs& costs, std::uint32_t max_orders);

  const Networks& networks() const { return networks_; }
  const simulator::Network& network() const { return networks_.own; }
  // Empty, or why flat algorithms do not use all ports of a host.
  const std::string& note() const { return networks_.note; }
  const simulator::Costs& costs() const { return costs_; }
  bool on_devices() const { return on_devices_; }
  bool only_rings() const { return rings_.only_rings; }
  // True if NVLinks connect each pair of ranks of one host.
  bool on_nvlinks() const;
  bool switches_add() const;  // GPUs of one host with switches that add and multicast.
  // Sets the lanes of a communicator of these ranks on GPUs. Each query of a problem must have the same catalogue.
  void set_lanes(Query& query) const;
  // Staging ring of such a communicator.
  StagingRing ring() const;
  bool has_orders(const Algorithm& algorithm) const;
  // True if some ranks communicate over the network between hosts.
  bool spans_network() const;
  // False for algorithms that access peers' memory where a network leads to some peers.
  bool can_map(const Algorithm& algorithm) const;

  // Prepares an algorithm for calls. The model must outlive the result and must not be moved. Fails like
  // Simulation::make().
  Result<simulator::Simulation> prepare(const Algorithm& algorithm, const Problem& problem,
                                        simulator::Limits limits) const;

  // Returns the query by which the library chooses for a call. `bytes` counts as in nccl-tests.
  Query query_of(const Problem& problem, double bytes) const;
  // Returns the call that the library makes after that choice.
  simulator::Call call_of(const Choice& choice, double bytes) const;

 private:
  LaneBudget lane_budget() const;

  Networks networks_;
  simulator::Costs costs_;
  bool on_devices_ = false;
  HostRings rings_;
  Rails rails_;
  mutable std::vector<std::pair<Problem, decltype(Query::on_rails)>> on_rails_;  // By problem.
};

// Size of a rank's larger buffer, as nccl-tests count it.
double whole_bytes(const Query& query);

// Sentences about the times of a cluster with several hosts; empty for one host.
std::vector<std::string> notes_on_hosts(const simulator::Network& network);

// Replaces the predicted times of candidates by simulated ones. Keeps the first, which is the library's choice, and
// sorts the others by their times. Candidates that take too long to simulate get the time 0 and go to the end.
Status simulate_candidates(const CallModel& model, const Query& query, std::vector<Candidate>& found);

}  // namespace tutti::tool
