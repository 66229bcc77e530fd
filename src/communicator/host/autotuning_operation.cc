#include "src/communicator/host/autotuning_operation.h"

#include <utility>

#include "src/base/caught.h"
#include "src/base/clock.h"

namespace tutti {

Status AutotuningOperation::begin() {
  if (!parts_.exchange.must_recall()) return begin_call();
  return begin_internal(parts_.exchange.recall(call_, options_));
}

Status AutotuningOperation::begin_internal(const InternalCollective& internal) {
  PreparedCall* prepared = TUTTI_TRY(parts_.exchange.prepare(internal));
  running_ = std::make_unique<CollectiveOperation>(parts_, *prepared, internal.call, internal.options);
  return {};
}

Status AutotuningOperation::begin_call() {
  part_ = Part::call;
  prepared_ = TUTTI_TRY(parts_.calls.prepare(call_, options_));
  ended_.tuned = prepared_->tuned;
  began_ns_ = now_ns();
  running_ = std::make_unique<CollectiveOperation>(parts_, *prepared_, call_, options_);
  return {};
}

Result<bool> AutotuningOperation::advance() {
  for (;;) {
    const bool done = TUTTI_TRY(running_->advance());
    if (!done) return false;
    Result<bool> ended = caught([this] { return next(); });
    if (!ended.ok()) return parts_.control.failures.reported(std::move(ended).status());
    if (ended.value()) return true;
  }
}

Result<bool> AutotuningOperation::next() {
  running_.reset();
  switch (part_) {
    case Part::recall:
      parts_.exchange.end_recall();
      TUTTI_CHECK_OK(begin_call());
      return false;
    case Part::call:
      if (ended_.tuned == nullptr) return true;
      ended_.tuning = ended_.tuned->took(prepared_->ran_mapped, now_ns() - began_ns_);
      if (ended_.tuning == nullptr) return true;
      TUTTI_CHECK_OK(begin_internal(parts_.exchange.sum(call_, options_, ended_, sums_ns_)));
      part_ = Part::result;
      return false;
    case Part::result: parts_.exchange.end_sum(ended_, sums_ns_); return true;
  }
  return true;
}

}  // namespace tutti
