#include "src/communicator/device/prepared_calls.h"

namespace tutti {

Result<const PreparedDeviceCall*> PreparedDeviceCalls::prepare(const Call& call, const CommunicatorOptions& options) {
  Cache::Slot& slot = *TUTTI_TRY(filled_slot(call, options));
  if (slot.tuned() != nullptr) preparer_.autotuning()->assign(*slot.tuned(), call);
  const PreparedDeviceCall* prepared = TUTTI_TRY(prepared_in(slot, call, options));
  return prepared;
}

Result<PreparedDeviceCall*> PreparedDeviceCalls::make(const Call& call, const CommunicatorOptions& options) {
  Cache::Slot& slot = *TUTTI_TRY(filled_slot(call, options));
  PreparedDeviceCall* prepared = TUTTI_TRY(prepared_in(slot, call, options));
  if (preparer_.autotuning() != nullptr && call.kind == Kind::collective) note_made(slot, call);
  return prepared;
}

Result<PreparedDeviceCalls::Cache::Slot*> PreparedDeviceCalls::filled_slot(const Call& call,
                                                                           const CommunicatorOptions& options) {
  const CallKey key = preparer_.key_of(call, options);
  Cache::Slot* slot = cache_.find(key);
  if (slot != nullptr) return slot;
  slot = TUTTI_TRY(cache_.fill(key, call, options));
  if (preparer_.autotuning() != nullptr && call.kind == Kind::collective) not_made_.push_back(slot);
  return slot;
}

// Within a group, an earlier call may have put the tuning result into the slot already.
Result<PreparedDeviceCall*> PreparedDeviceCalls::prepared_in(Cache::Slot& slot, const Call& call,
                                                             const CommunicatorOptions& options) {
  const DeviceAutotuning* const autotuning = preparer_.autotuning();
  const DeviceAutotuning::Assignment* assignment = autotuning == nullptr ? nullptr : autotuning->assignment_of(call);
  if (assignment == nullptr || (assignment->settled && slot.tuned() == nullptr)) return slot.prepared();
  return cache_.try_candidate(slot, call, options, *assignment->tuned, assignment->candidate);
}

void PreparedDeviceCalls::note_made(Cache::Slot& slot, const Call& call) {
  DeviceAutotuning& autotuning = *preparer_.autotuning();
  not_made_.clear();
  autotuning.keep_classes();
  const DeviceAutotuning::Assignment* assignment = autotuning.assignment_of(call);
  if (assignment == nullptr) return;
  if (assignment->settled && slot.tuned() != nullptr) cache_.settle(slot, assignment->candidate);
  autotuning.note_made(call);
}

void PreparedDeviceCalls::cancel() {
  if (preparer_.autotuning() == nullptr) return;
  for (Cache::Slot* slot : not_made_) cache_.clear(*slot);
  not_made_.clear();
  preparer_.autotuning()->cancel();
}

}  // namespace tutti
