#include "src/communicator/host/autotuned_call.h"

#include <span>

#include "src/base/clock.h"

namespace tutti {
namespace {

// Hashes of options for internal calls. They match neither calls of the user nor each other.
constexpr std::uint32_t kRecalling = 0x74756e65;
constexpr std::uint32_t kSumming = 0x74756e66;

}  // namespace

Result<const AutotunedCall::Collective*> AutotunedCall::next() {
  HostAutotuning& autotuning = backend_.autotuning();
  const Collective* const done = nullptr;
  switch (part_) {
    case Part::none: return autotuning.saved().needs_sharing() ? begin_broadcast_saved() : begin_call();
    case Part::broadcast_saved: autotuning.saved().mark_shared(); return begin_call();
    case Part::call:
      if (tuned_ == nullptr) return done;
      ended_ = tuned_->record(running_.prepared->ran_mapped(), now_ns() - began_ns_);
      return ended_ == nullptr ? Result<const Collective*>(done) : begin_sum();
    case Part::sum:
      tuned_->conclude(*ended_, sums_ns_, runner_.membership_.ranks);
      if (runner_.membership_.rank == 0 && ended_->autotuner.settled()) ended_->log_result();
      return done;
  }
  return done;
}

// Rank 0 reads the file.
Result<const AutotunedCall::Collective*> AutotunedCall::begin_broadcast_saved() {
  part_ = Part::broadcast_saved;
  SavedTuning& saved = backend_.autotuning().saved();
  saved.read();
  const std::span<std::byte> table = std::as_writable_bytes(saved.table());
  Call broadcast;
  broadcast.collective = tutti::Collective::broadcast;
  broadcast.type = DataType::int8;
  broadcast.count = table.size();
  broadcast.input = broadcast.output = table.data();
  return begin_internal(broadcast, kRecalling);
}

Result<const AutotunedCall::Collective*> AutotunedCall::begin_call() {
  part_ = Part::call;
  const HostBackend::Found found = TUTTI_TRY(backend_.prepare(call_, options_));
  running_ = {found.prepared, call_, options_};
  tuned_ = found.tuned;
  began_ns_ = now_ns();
  return &running_;
}

Result<const AutotunedCall::Collective*> AutotunedCall::begin_sum() {
  part_ = Part::sum;
  sums_ns_ = ended_->autotuner.measurements();
  Call sum;
  sum.type = DataType::uint64;
  sum.count = sums_ns_.size();
  sum.input = sum.output = reinterpret_cast<std::byte*>(sums_ns_.data());
  const ClassOfCalls& calls = ended_->calls;
  return begin_internal(sum, kSumming + static_cast<std::uint32_t>(calls.collective) * 256 + calls.size_class);
}

Result<const AutotunedCall::Collective*> AutotunedCall::begin_internal(const Call& internal, std::uint32_t form) {
  CommunicatorOptions own = options_;
  own.tune = Tune::off;
  own.shows_buffers = false;
  own.agreement_hash = form;
  const HostBackend::Found found = TUTTI_TRY(backend_.prepare(internal, own));
  CommunicatorOptions of_call = options_;  // Errors describe the settings of the program's call.
  of_call.agreement_hash = form;
  found.prepared->record = record_of(call_, of_call);
  running_ = {found.prepared, internal, std::move(own)};
  return &running_;
}

Result<bool> AutotunedCall::start_next() {
  operation_.reset();
  const Collective* following = TUTTI_TRY(next());
  if (following == nullptr) return true;
  operation_.emplace(runner_, *following->prepared, following->call, following->options);
  return false;
}

Result<bool> AutotunedCall::advance() {
  for (;;) {
    const bool done = TUTTI_TRY(operation_->advance());
    if (!done) return false;
    const bool ended = TUTTI_TRY(runner_.control_.failures.guarded([this] { return start_next(); }));
    if (ended) return true;
  }
}

}  // namespace tutti
