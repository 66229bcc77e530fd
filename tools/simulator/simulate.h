// Simulated time of a collective on a cluster, from the plans of its algorithm as they are emitted, fused and run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/simulator/engine.h"

namespace tutti::simulator {

// One call, as a tuner has chosen it.
struct Call {
  double bytes = 0;  // Size of a rank's larger buffer, as in nccl-tests.
  Protocol protocol = Protocol::simple;
  LaunchMode launch = LaunchMode::eager;
  std::uint32_t channels = 1;
  double chunk_bytes = 65536;  // Maximum message of a channel, or its part of a position of the staging ring.
  double slot_bytes = 0;       // Maximum message of a channel if chunks are limited by the ring; 0: no limit.
  Loop loop = {.skew = 1,
               .order = StageOrder::earliest_first,
               .slots = 4};  // The number of chunks follows from the other fields.
  // Element type and compression of messages. With compression no step accesses peers' memory, and `chunk_bytes` is the
  // size of compressed messages.
  CompressionFormat compression = CompressionFormat::none;
  DataType type = DataType::float32;
  double jitter = 0;
  std::uint64_t seed = 1;
  std::vector<TraceEvent>* trace = nullptr;
};

// Returns the channels and chunks of the library whose figures these are, for the size and protocol of the call.
void cut(Call& call, const Costs& costs, Collective collective, Rank ranks);

struct Limits {
  bool symmetric = true;                  // Simulate one rank for all ranks that behave alike.
  std::uint64_t max_events = 30'000'000;  // Maximum events of a call: further chunks are extrapolated.
  ProgramLimits program;
  // Rank orders that channels use round-robin, if all ranks are simulated; empty: rank order.
  std::vector<RankMapping> orders;
};

// Use of one kind of links: the total of all used links, and the busiest one.
struct KindUse {
  LinkKind kind = LinkKind::memory;
  double bytes = 0;         // Total of all links and ranks, with overhead of the protocol.
  double busiest_part = 0;  // Busy fraction of the time.
  std::string busiest;
};

struct Outcome {
  double time_us = 0;
  double algorithm_gbytes_per_s = 0;
  double bus_gbytes_per_s = 0;
  Chain chain;  // Parts that add up to the time.
  std::vector<KindUse> links;
  std::uint32_t chunks = 1;
  std::uint32_t simulated_chunks = 1;
  std::uint64_t events = 0;
  double data_bytes = 0;           // Sent by all ranks, without overhead of the protocol.
  std::vector<std::string> notes;  // Omissions and deviations from the request, one sentence each.
};

// Factor from algorithm bandwidth to bus bandwidth, as in nccl-tests.
double bus_factor(Collective collective, Rank ranks);
// Bytes that one rank contributes or receives.
double block_bytes(Collective collective, Rank ranks, double bytes);

// An algorithm prepared for calls of all sizes.
class Simulation {
 public:
  // The network must outlive the result. The ranks and groups of the problem are those of the network. Fails if the
  // algorithm does not support them, and like make_program().
  static Result<Simulation> make(const Network& network, const Costs& costs, const Algorithm& algorithm,
                                 const Problem& problem, const Limits& limits = {});
  // Maximum number of events that run() will process. With more orders than channels, only the first orders are
  // used.
  std::uint64_t events_of(const Call& call) const;
  // Fails with `internal` if ranks would wait forever.
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
  std::vector<Program> programs_;  // [n - 1]: for n orders.
};

// Returns the problem of a collective over all ranks of a network. Groups are hosts, or NVLink domains of several
// hosts.
Problem problem_on(const Network& network, Collective collective, Rank root = 0);

}  // namespace tutti::simulator
