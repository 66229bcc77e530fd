// Internal collectives of autotuning, beside a call of the user: rank 0 broadcasts the results of earlier runs, and the
// ranks sum up the measurements of a stage. Error messages describe such a collective as the user's call.
#pragma once

#include <cstdint>
#include <vector>

#include "src/communicator/host/prepared_calls.h"

namespace tutti {

struct InternalCollective {
  Call call;
  CommunicatorOptions options;
  CallRecord record;
};

// Class whose stage of autotuning has ended with a call; `tuning` is null if none has ended.
struct EndedStage {
  Autotuning::Class* tuned = nullptr;
  Autotuning::TuningClass* tuning = nullptr;
};

class AutotuningExchange {
 public:
  AutotuningExchange(const Membership& membership, PreparedCalls& calls) : membership_(membership), calls_(calls) {}

  // Returns whether the results of earlier runs must be broadcast before the first autotuned call.
  bool must_recall() const { return calls_.autotuning().kept().unreported(); }
  // Returns the broadcast. Rank 0 reads the file.
  InternalCollective recall(const Call& call, const CommunicatorOptions& options);
  void end_recall() { calls_.autotuning().kept().reported(); }

  // Returns the sum over all ranks. `sums_ns` is its buffer.
  InternalCollective sum(const Call& call, const CommunicatorOptions& options, const EndedStage& ended,
                         std::vector<std::uint64_t>& sums_ns) const;
  void end_sum(const EndedStage& ended, const std::vector<std::uint64_t>& sums_ns);

  Result<PreparedCall*> prepare(const InternalCollective& internal);

 private:
  const Membership& membership_;
  PreparedCalls& calls_;
};

}  // namespace tutti
