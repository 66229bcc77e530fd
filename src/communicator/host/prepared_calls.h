// The prepared calls of a rank, by shape. Calls of a known shape are not prepared again. For an autotuned call, returns
// the candidate that is tried next.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "src/communicator/host/call_planner.h"
#include "src/communicator/host/prepared_call.h"
#include "src/communicator/host/run_statistics.h"

namespace tutti {

class PreparedCalls {
 public:
  PreparedCalls(Membership& membership, CallPlanner& planner, RunStatistics& statistics);

  // Returns the call that was prepared last; null: none, or it is autotuned.
  PreparedCall* latest() const { return latest_; }
  // Returns the prepared call. Does not wait. It is valid until the next call of this function.
  Result<PreparedCall*> prepare(const Call& call, const CommunicatorOptions& options);
  // Shows how a call ran, after it is known whether it was mapped.
  void show_ran(const PreparedCall& prepared);

  bool autotunes(const Call& call, const CommunicatorOptions& options) const;
  Autotuning& autotuning() { return autotuning_; }

 private:
  using Slot = std::unique_ptr<PreparedCall>;
  Result<Slot> prepare_autotuning(const Call& call, const CommunicatorOptions& options);
  Result<PreparedCall*> next_tried(Slot& slot, const Call& call, const CommunicatorOptions& options);
  void show(const PreparedCall& prepared) const;

  PreparedCall* latest_ = nullptr;
  Membership& membership_;
  CallPlanner& planner_;
  RunStatistics& statistics_;
  Autotuning autotuning_;
  std::array<Slot, 256> slots_;
};

}  // namespace tutti
