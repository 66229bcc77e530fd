// An autotuned call: it is timed. If a stage of autotuning ends with it, the ranks sum up their measurements before the
// call is done. Before the first autotuned call, rank 0 broadcasts the results of earlier runs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/communicator/host/collective_operation.h"

namespace tutti {

class AutotuningOperation final : public Operation {
 public:
  AutotuningOperation(CollectiveParts& parts, const Call& call, const CommunicatorOptions& options)
      : parts_(parts), call_(call), options_(options) {}
  // Must be called before the other functions.
  Status begin();

  Result<bool> advance() override;
  Status wait() override { return running_->wait(); }

 private:
  enum class Part : std::uint8_t { recall, call, result };
  // Starts the next step. Returns true if there is none.
  Result<bool> next();
  Status begin_call();
  Status begin_internal(const InternalCollective& internal);

  CollectiveParts& parts_;
  const Call call_;
  const CommunicatorOptions options_;
  Part part_ = Part::recall;
  PreparedCall* prepared_ = nullptr;  // The running call.
  std::int64_t began_ns_ = 0;
  EndedStage ended_;
  std::vector<std::uint64_t> sums_ns_;
  std::unique_ptr<CollectiveOperation> running_;
};

}  // namespace tutti
