// How long a collective takes on a cluster: the plans of its algorithm, as they are emitted, fused and run, on a clock.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/simulator/engine.h"

namespace tutti::simulator {

// One call, as a tuner has chosen it.
struct Call {
  double bytes = 0;  // As nccl-tests count it: of the larger of a rank's buffers.
  Protocol protocol = Protocol::simple;
  LaunchMode launch = LaunchMode::eager;
  std::uint32_t channels = 1;
  double chunk_bytes = 65536;                                                // The longest message of a channel.
  Loop loop = {.skew = 1, .order = StageOrder::earliest_first, .slots = 4};  // Pieces follow from the rest.
  // How elements of this type travel between ranks; in a format none are in peers' memory, and `chunk_bytes` is of
  // messages.
  CompressionFormat compression = CompressionFormat::none;
  DataType type = DataType::float32;
  double jitter = 0;
  std::uint64_t seed = 1;
  std::vector<TraceEvent>* trace = nullptr;
};

// Channels and chunks as the library has them whose figures these are, for the call's bytes and protocol.
void cut(Call& call, const Costs& costs, Collective collective, Rank ranks);

struct Limits {
  bool fold = true;                       // Ranks that do the same, where nothing tells them apart.
  std::uint64_t max_events = 30'000'000;  // Maximum events of a call: further chunks are extrapolated.
  ProgramLimits program;
  // Rank orders that channels use in turn, if all ranks are simulated; empty: rank order.
  std::vector<RankMapping> orders;
};

// Use of one kind of links: all used ones together, and the busiest.
struct KindUse {
  LinkKind kind = LinkKind::memory;
  double bytes = 0;         // Over all links and ranks, on the wire.
  double busiest_part = 0;  // Busy fraction of the time.
  std::string busiest;
};

struct Outcome {
  double time_us = 0;
  double algorithm_gbytes_per_s = 0;
  double bus_gbytes_per_s = 0;
  Chain chain;  // Its parts add up to the time.
  std::vector<KindUse> links;
  std::uint32_t chunks = 1;
  std::uint32_t simulated_chunks = 1;
  std::uint64_t events = 0;
  double data_bytes = 0;           // Sent by all ranks, without what protocols add.
  std::vector<std::string> notes;  // Omissions and deviations from the request, a sentence each.
};

// By nccl-tests: what a second of algorithm bandwidth is on the links.
double bus_factor(Collective collective, Rank ranks);
// Bytes that one rank contributes or receives.
double block_bytes(Collective collective, Rank ranks, double bytes);

// An algorithm made ready for calls of all sizes.
class Simulation {
 public:
  // The network has to outlive it. The problem's ranks and groups are those of the network. Fails where the algorithm
  // does not support them, and as make_program() does.
  static Result<Simulation> make(const Network& network, const Costs& costs, const Algorithm& algorithm,
                                 const Problem& problem, const Limits& limits = {});
  // Maximum number of events that run() will process. With more orders than channels, only the first orders are
  // used.
  std::uint64_t events_of(const Call& call) const;
  // Fails with `internal` where ranks would wait for ever.
  Result<Outcome> run(const Call& call) const;

  // Program of calls with at least as many channels as orders.
  const Program& program() const { return programs_.back(); }

 private:
  Simulation(const Network& network, const Costs& costs, const Problem& problem, const Limits& limits)
      : network_(&network), costs_(costs), problem_(problem), limits_(limits) {}
  const Program& program_of(const Call& call) const;
  EngineRequest request_for(const Call& call) const;
  Outcome outcome_of(const Call& call, const EngineRequest& request, EngineResult result) const;

  const Network* network_;
  Costs costs_;
  Problem problem_;
  Limits limits_;
  std::vector<Program> programs_;  // [n - 1]: of n orders.
};

// The problem of a collective over all ranks of a network. Its groups are hosts, or NVLink domains of several hosts.
Problem problem_on(const Network& network, Collective collective, Rank root = 0);

}  // namespace tutti::simulator
