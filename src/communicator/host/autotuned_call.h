// An autotuned call as a sequence of collectives. Before the first autotuned call, rank 0 broadcasts the results of
// earlier runs. The call is timed. If a stage of autotuning ends with it, the ranks sum up their measurements.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/communicator/host/collective_operation.h"
#include "src/communicator/host/host_backend.h"

namespace tutti {

class AutotunedCall final : public Operation {
 public:
  AutotunedCall(HostBackend& backend, CallRunner& runner, const Call& call, const CommunicatorOptions& options)
      : backend_(backend), runner_(runner), call_(call), options_(options) {}

  struct Collective {
    PreparedCall* prepared = nullptr;
    Call call;
    CommunicatorOptions options;
  };
  // Returns the next collective to run, once the previous one is done; null: the call is done. Does not wait.
  Result<const Collective*> next();

  // For a thread that drives other operations, too: starts the next collective. Returns true if there is none. Called
  // once before advance() and wait().
  Result<bool> start_next();
  Result<bool> advance() override;
  Status wait() override { return operation_->wait(); }

 private:
  enum class Part : std::uint8_t { none, broadcast_saved, call, sum };
  Result<const Collective*> begin_broadcast_saved();
  Result<const Collective*> begin_call();
  Result<const Collective*> begin_sum();
  // Prepares an internal collective. Error messages describe it as the user's call.
  Result<const Collective*> begin_internal(const Call& internal, std::uint32_t form);

  HostBackend& backend_;
  CallRunner& runner_;
  const Call call_;
  const CommunicatorOptions options_;
  Part part_ = Part::none;  // The part that runs.
  Collective running_;
  std::optional<CollectiveOperation> operation_;  // Runs running_, after start_next().
  std::int64_t began_ns_ = 0;
  HostAutotuning::Class* tuned_ = nullptr;  // Null: the call is not autotuned any more.
  TuningClass* ended_ = nullptr;            // Autotuner whose stage has ended with this call; null: none.
  std::vector<std::uint64_t> sums_ns_;
};

}  // namespace tutti
