// Prepares calls on host memory: from a call to the choice of the tuner, the plan, and the layout of the data.
#pragma once

#include <memory>
#include <optional>

#include "src/communicator/autotuning/host_autotuning.h"
#include "src/communicator/host/connected_plans.h"
#include "src/communicator/host/prepared_call.h"

namespace tutti {

// No function waits. CallCache (planning/call_cache.h) uses the types and the functions from class_of() to retire().
class HostCallPreparer {
 public:
  using Prepared = PreparedCall;
  using Class = HostAutotuning::Class;
  using Trial = HostAutotuning::Trial;

  explicit HostCallPreparer(Membership& membership);

  // See Communicator::predict_us().
  Result<double> predict_us(const Call& call, const CommunicatorOptions& options);
  CallKey key_of(const Call& call, const CommunicatorOptions& options) const;
  HostAutotuning& autotuning() { return autotuning_; }

  Result<Class*> class_of(const Call& call, const CommunicatorOptions& options);
  Result<std::unique_ptr<PreparedCall>> prepare(const Call& call, const CommunicatorOptions& options) {
    return prepare_by(call, options, nullptr);
  }
  Result<std::unique_ptr<PreparedCall>> prepare_trial(const Call& call, const CommunicatorOptions& options,
                                                      const Class& /*tuned*/, const Trial& trial) {
    return prepare_by(call, options, &trial);
  }
  static void retire(std::unique_ptr<PreparedCall> prepared) { prepared.reset(); }

  // Returns the run in mapped memory. `peers` holds the buffers of all ranks when the call runs.
  Result<PlanRun*> mapped_run(Mappable& mappable, const Call& call, const RankBuffers* peers);
  // Returns the rank whose address a run still needs; nullopt: ready to run.
  Result<std::optional<Rank>> awaited_by(const Call& call, PlanRun& run);

 private:
  // Prepares the call with these choices, if they support the call. Null: as predicted by the tuner.
  Result<std::unique_ptr<PreparedCall>> prepare_by(const Call& call, const CommunicatorOptions& options,
                                                   const Trial* given);
  Result<Query> query_for(const Call& call, const CommunicatorOptions& options) const;
  // Fails if a call cannot run in mapped memory by the algorithm that the options force.
  Status check_mapped(const Call& call, const Algorithm& algorithm, const Problem& mine) const;
  // Returns the algorithm to use if the buffers of all ranks are mapped; null: none.
  const Algorithm* mapped_algorithm(const Call& call, const ChosenCall& chosen, const Problem& mine,
                                    const Trial* given) const;
  Status lay_out(const Call& call, PlanRun& run) const;
  void bind(const Call& call, PlanRun& run) const;

  Membership& membership_;
  const Machine machine_;  // Machine model for the tuner; equal on all ranks.
  ConnectedPlans plans_;
  CallPlanner planner_;
  HostAutotuning autotuning_;
};

}  // namespace tutti
