// Prepares calls: from a call to the choice of the tuner, the plan, and the layout of the data. Keeps no prepared
// calls; see PreparedCalls.
#pragma once

#include <memory>
#include <optional>

#include "src/communicator/host/connected_plans.h"
#include "src/communicator/host/prepared_call.h"
#include "src/communicator/planning/advice.h"

namespace tutti {

// No function waits.
class CallPlanner {
 public:
  explicit CallPlanner(Membership& membership);

  // See Communicator::predict_us().
  Result<double> predict_us(const Call& call, const CommunicatorOptions& options);
  CallKey key_of(const Call& call, const CommunicatorOptions& options) const;
  // Returns the tuner's query for the call through lanes.
  Result<Query> query_for(const Call& call, const CommunicatorOptions& options) const;

  // Prepares the call with these choices, if they support the call. Null: as predicted by the tuner.
  Result<std::unique_ptr<PreparedCall>> prepare(const Call& call, const CommunicatorOptions& options,
                                                const GivenChoices* given);
  // Returns the same call, prepared for mapped memory. `peers` holds the buffers of all ranks when the call runs.
  Result<PreparedCall*> mapped_variant(PreparedCall& prepared, const Call& call, const RankBuffers* peers);
  // Returns the rank whose address a prepared call still needs; nullopt: ready to run.
  Result<std::optional<Rank>> awaited_by(const Call& call, PreparedCall& prepared);

 private:
  // Prepares a call that runs only in mapped memory, by this algorithm. Fails if the algorithm does not do the call.
  Status force_mapped(const Call& call, const Algorithm& algorithm, const Problem& mine, PreparedCall& prepared) const;
  Status lay_out(const Call& call, PreparedCall& prepared) const;
  void bind(const Call& call, PreparedCall& prepared) const;

  Membership& membership_;
  ConnectedPlans plans_;
  Advice advice_;
  const Machine machine_;  // Machine model for the tuner; equal on all ranks.
};

}  // namespace tutti
