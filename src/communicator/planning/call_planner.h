// From a call to the plan that it runs: the choice of the tuner or of a plugin, and the key of the plan. Common to host
// memory and devices, which differ in the tuner's query.
#pragma once

#include <functional>
#include <memory>

#include "src/communicator/planning/planning.h"
#include "src/tuner/plugin/plugin.h"

namespace tutti {

// Distinguishes the plans of a rank.
struct PlanKey {
  Problem problem;  // In place if the plan is.
  const Algorithm* algorithm;
  Protocol protocol;
  bool pipelined;  // Chunks may overlap. The order of steps, and therefore the form of lanes, depends on it.
  CompressionFormat compression = CompressionFormat::none;
  bool by_switches = false;
  bool operator==(const PlanKey&) const = default;
};

struct ChosenCall {
  CallRecord record;  // Includes the choice of the plugin.
  Query query;
  Choice choice;
  bool advised = false;  // The plugin made the choice.
};

// How calls run a plan.
struct PlannedCall {
  PlanKey key;
  bool in_place = false;      // The buffers of the call are in place.
  bool copies_input = false;  // The plan is not, and reads a copy of the input.
  bool has_residual = false;  // The plan reads the input with its residual added.
};

// Not thread-safe. No function waits.
class CallPlanner {
 public:
  // Returns the tuner's query. `call` and `options` must outlive it.
  using QuerySource = std::function<Result<Query>(const Call&, const CommunicatorOptions&)>;
  // `hosts` must outlive this object. `plugin` is as in CommunicatorOptions. If it cannot be opened or initialized,
  // logs that and never asks it.
  CallPlanner(Rank rank, const Hosts& hosts, const std::string& plugin, QuerySource query_of);

  // Chooses how a call runs. Follows `like`, a choice for another block size. If that is null, the tuner chooses,
  // unless the plugin of the rank does. Ranks with different plugins detect that their calls differ.
  Result<ChosenCall> choose(const Call& call, const CommunicatorOptions& options, const Choice* like);
  // Returns the plan of a choice. Fails if its algorithm does not support the problem.
  Result<PlannedCall> plan(const Call& call, const ChosenCall& chosen) const;
  // See Communicator::predict_us(). `mappable`: all ranks may be able to map the buffers, which the query leaves out.
  Result<double> predict_us(const Call& call, const CommunicatorOptions& options, bool mappable);

 private:
  // Asks the plugin about a call whose algorithm is not forced.
  Status advise(ChosenCall& chosen);
  // Returns the algorithm of a choice. Fails if no algorithm of this name supports the problem.
  Result<const Algorithm*> algorithm_of(const ChosenCall& chosen) const;

  const Rank rank_, ranks_;
  const RankMapping rank_mapping_;
  const QuerySource query_of_;
  std::unique_ptr<TunerAdviser> adviser_;  // Null: no plugin.
};

// Returns how the calls of a plan run, as last_run() reports it. Empty `protocol`: without lanes.
ReportedRuns runs_of(const PlanKey& key, const char* protocol);

}  // namespace tutti
