#include "src/communicator/device/prepared_calls.h"

#include <utility>

namespace tutti {

Result<const PreparedDeviceCall*> PreparedDeviceCalls::prepare(const Call& call, const CommunicatorOptions& options) {
  Slot& slot = *TUTTI_TRY(filled_slot(call, options));
  if (slot.tuned != nullptr) autotuning_->assign(*slot.tuned, call);
  const PreparedDeviceCall* prepared = TUTTI_TRY(prepared_in(slot, call, options));
  return prepared;
}

Result<PreparedDeviceCall*> PreparedDeviceCalls::find(const Call& call, const CommunicatorOptions& options) {
  Slot& slot = *TUTTI_TRY(filled_slot(call, options));
  return prepared_in(slot, call, options);
}

// ---- Slots ----

PreparedDeviceCalls::Slot& PreparedDeviceCalls::slot_of(const DeviceCallKey& key) {
  const std::uint64_t flags = (key.in_place ? 1 : 0) + (key.in_windows ? 2 : 0) + (key.has_residual ? 4 : 0);
  return slots_[mix(key.count * 31 + key.shape * 7 + flags + key.forced) % slots_.size()];
}

Result<PreparedDeviceCalls::Slot*> PreparedDeviceCalls::filled_slot(const Call& call,
                                                                    const CommunicatorOptions& options) {
  const DeviceCallKey key = preparer_.key_of(call, options);
  Slot& slot = slot_of(key);
  if (slot.is_filled() && slot.key == key) return &slot;
  Slot fresh;
  TUTTI_CHECK_OK(fill(fresh, call, options));
  clear(slot);
  slot = std::move(fresh);
  slot.key = key;
  if (autotuning_ != nullptr && call.kind == Kind::collective) not_made_.push_back(&slot);
  return &slot;
}

Status PreparedDeviceCalls::fill(Slot& slot, const Call& call, const CommunicatorOptions& options) {
  if (call.kind != Kind::collective) {
    slot.prepared = TUTTI_TRY(preparer_.prepare_message(call));
    return {};
  }
  std::vector<Candidate> candidates;
  Query query;
  if (is_tuned(call, options)) {
    DevicePlanChooser& chooser = preparer_.chooser();
    const Problem problem = TUTTI_TRY(chooser.problem_for(call, options));
    query = TUTTI_TRY(chooser.query_of(call, problem, options));
    candidates = TUTTI_TRY(chooser.candidates_to_tune(query));
  }
  if (candidates.empty()) {
    slot.prepared = TUTTI_TRY(preparer_.prepare(call, options, nullptr));
    return {};
  }
  DeviceAutotuning::Class& tuned = autotuning_->class_of(query, std::move(candidates));
  if (!tuned.settled()) {
    slot.tuned = &tuned;
    return {};
  }
  slot.prepared = TUTTI_TRY(prepare_candidate(tuned.tuning.autotuner.next(), tuned.tuning, call, options));
  return {};
}

void PreparedDeviceCalls::clear(Slot& slot) {
  if (slot.prepared != nullptr) retire(std::move(slot.prepared));
  for (auto& [candidate, tried] : slot.tried) retire(std::move(tried));
  slot = {};
}

void PreparedDeviceCalls::retire(std::unique_ptr<PreparedDeviceCall> prepared) {
  if (prepared->replayed) {
    replayed_.push_back(std::move(prepared));
    return;
  }
  memory_.retire(prepared->memory, prepared->memory_bytes, prepared->latest);
  memory_.retire(prepared->workspace, prepared->workspace_bytes, prepared->latest);
}

// ---- Autotuning ----

bool PreparedDeviceCalls::is_tuned(const Call& call, const CommunicatorOptions& options) const {
  return autotuning_ != nullptr && is_tunable(call, options) &&
         compression_request(call, options, preparer_.ranks()).compression == CompressionFormat::none;
}

Result<PreparedDeviceCall*> PreparedDeviceCalls::prepared_in(Slot& slot, const Call& call,
                                                             const CommunicatorOptions& options) {
  const DeviceAutotuning::Assignment* assignment = autotuning_ == nullptr ? nullptr : autotuning_->assignment_of(call);
  return assignment == nullptr ? slot.prepared.get() : tried_in(slot, call, options, *assignment);
}

// Within a group, an earlier call may have put the tuning result into the slot already.
Result<PreparedDeviceCall*> PreparedDeviceCalls::tried_in(Slot& slot, const Call& call,
                                                          const CommunicatorOptions& options,
                                                          const DeviceAutotuning::Assignment& assignment) {
  if (slot.tuned == nullptr) {
    if (assignment.settled) return slot.prepared.get();
    const DeviceCallKey key = slot.key;
    clear(slot);
    slot.key = key;
    slot.tuned = assignment.tuned;
  }
  const auto known = slot.tried.find(assignment.candidate);
  if (known != slot.tried.end()) return known->second.get();
  auto made = TUTTI_TRY(prepare_candidate(assignment.candidate, assignment.tuned->tuning, call, options));
  return slot.tried.emplace(assignment.candidate, std::move(made)).first->second.get();
}

// A candidate that does not fit its lanes fails on all ranks; then all use the first choice.
Result<std::unique_ptr<PreparedDeviceCall>> PreparedDeviceCalls::prepare_candidate(std::size_t candidate,
                                                                                   const TuningClass& tuning,
                                                                                   const Call& call,
                                                                                   const CommunicatorOptions& options) {
  auto made = preparer_.prepare(call, options, &tuning.candidates[candidate].choice);
  if (made.ok()) return made;
  Status why = std::move(made).status();
  if (why.code() != Code::unsupported || candidate == 0) return why;
  return preparer_.prepare(call, options, &tuning.candidates.front().choice);
}

void PreparedDeviceCalls::note_made(const Call& call, const CommunicatorOptions& options) {
  if (autotuning_ == nullptr) return;
  not_made_.clear();
  autotuning_->keep_classes();
  const DeviceAutotuning::Assignment* assignment = autotuning_->assignment_of(call);
  if (assignment == nullptr) return;
  Slot& slot = slot_of(preparer_.key_of(call, options));
  if (assignment->settled && slot.tuned != nullptr) {
    const DeviceCallKey key = slot.key;
    std::unique_ptr<PreparedDeviceCall> result = std::move(slot.tried[assignment->candidate]);
    slot.tried.erase(assignment->candidate);
    clear(slot);
    slot.key = key;
    slot.prepared = std::move(result);
  }
  autotuning_->note_made(call);
}

void PreparedDeviceCalls::cancel() {
  if (autotuning_ == nullptr) return;
  for (Slot* slot : not_made_) clear(*slot);
  not_made_.clear();
  autotuning_->cancel();
}

}  // namespace tutti
