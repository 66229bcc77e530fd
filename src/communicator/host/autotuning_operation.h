// A call that is on trial: it is timed, and where a stage of the trial ends with it, what the ranks have seen is added
// up before it counts as done. Before the first of them rank 0 tells the others what earlier runs have kept.
#pragma once

#include <memory>
#include <vector>

#include "src/communicator/host/autotuning.h"
#include "src/communicator/host/collective_operation.h"

namespace tutti {

class AutotuningOperation final : public Operation {
 public:
  AutotuningOperation(HostCommunicator& owner, const Call& call, const CommunicatorOptions& options)
      : owner_(owner), call_(call), options_(options) {}
  Status begin();

  Result<bool> advance() override;
  Status wait() override { return running_->wait(); }

 private:
  enum class Part : std::uint8_t { recall, call, result };
  // Goes on to the next part; true: there is none.
  Result<bool> next();
  Status begin_call();

  HostCommunicator& owner_;
  const Call call_;
  const CommunicatorOptions options_;
  Part part_ = Part::recall;
  HostCommunicator::Prepared* prepared_ = nullptr;  // The running call.
  std::int64_t began_ns_ = 0;
  HostCommunicator::Ended ended_;
  std::vector<std::uint64_t> sums_ns_;
  std::unique_ptr<CollectiveOperation> running_;
};

}  // namespace tutti
