// Calls that autotuning times: which candidates they may use, and which one each call uses.
#include <string>
#include <utility>

#include "src/communicator/device/device_communicator.h"
#include "src/communicator/planning/machine_name.h"

namespace tutti {
// Autotuning needs the board, which ranks of other hosts do not see.
void DeviceCommunicator::prepare_to_autotune() {
  if (options().tune == Tune::off || ranks_ == 1 || peers_.network() || options().has_plugin()) return;
  const auto make_timer = [this] { return device().make_timer(); };
  autotuning_ = std::make_unique<DeviceAutotuning>(
      options(), DeviceAutotuning::Means{board(), rank_, make_timer, place_of_autotuners()});
  autotuning_->show_kept();
}

// Key of saved results for rank 0's device; see src/communicator/planning/machine_name.h.
std::string DeviceCommunicator::place_of_autotuners() const {
  if (options().tune_file.empty() || rank_ != 0) return "";
  const std::string& name = device().traits().name;
  std::string place = options().version + ", " + std::to_string(ranks_) + " ranks on " +
                      model_in_words(name.substr(0, name.find(" (device"))) + (peers_.on_one_device() ? "" : " each") +
                      ", " + std::to_string(peers_.thread_blocks()) + " thread blocks";
  if (peers_.in_turns()) place += " in turns";
  if (peers_.through_host()) place += ", by memory of the host";
  if (options().channels > 0) place += ", " + std::to_string(options().channels) + " channels asked for";
  if (chooser_.only_rings()) place += ", along rings";
  return place + ", links " + links_in_words(peers_.hosts());
}

bool DeviceCommunicator::autotunes(const Call& call, const CommunicatorOptions& options) const {
  return autotuning_ != nullptr && is_tunable(call, options) &&
         compression_request(call, options, ranks_).compression == CompressionFormat::none;
}

Result<std::unique_ptr<DeviceCommunicator::Prepared>> DeviceCommunicator::prepare_autotuning(
    const Call& call, const CommunicatorOptions& options) {
  const Problem problem = TUTTI_TRY(chooser_.problem_for(call, options));
  const Query query = TUTTI_TRY(chooser_.query_of(call, problem, options));
  std::vector<Candidate> all = TUTTI_TRY(chooser_.candidates_to_tune(query));
  if (all.empty()) return prepare(call, options, nullptr);
  DeviceAutotuning::Class& tuned = autotuning_->class_of(query, std::move(all));
  if (tuned.settled()) return prepare_as(tuned.tuning.autotuner.next(), tuned.tuning, call, options);
  auto being_tuned = std::make_unique<Prepared>();
  being_tuned->tuned = &tuned;
  return being_tuned;
}

// A candidate that does not fit its lanes fails on all ranks; then all use the first choice.
Result<std::unique_ptr<DeviceCommunicator::Prepared>> DeviceCommunicator::prepare_as(
    std::size_t candidate, const TuningClass& tuning, const Call& call, const CommunicatorOptions& options) {
  auto made = prepare(call, options, &tuning.candidates[candidate].choice);
  if (made.ok()) return made;
  Status why = std::move(made).status();
  if (why.code() != Code::unsupported || candidate == 0) return why;
  return prepare(call, options, &tuning.candidates.front().choice);
}

// Within a group, an earlier call may have put the tuning result into the slot already.
Result<DeviceCommunicator::Prepared*> DeviceCommunicator::tried(std::unique_ptr<Prepared>& slot, const Call& call,
                                                                const CommunicatorOptions& options,
                                                                const DeviceAutotuning::Turn& turn) {
  if (slot->tuned == nullptr) {
    if (turn.settled) return slot.get();
    auto being_tuned = std::make_unique<Prepared>();
    being_tuned->key = slot->key;
    being_tuned->tuned = turn.tuned;
    retire(std::move(slot));
    slot = std::move(being_tuned);
  }
  const auto known = slot->tried.find(turn.candidate);
  if (known != slot->tried.end()) return known->second.get();
  auto made = TUTTI_TRY(prepare_as(turn.candidate, turn.tuned->tuning, call, options));
  made->key = slot->key;
  return slot->tried.emplace(turn.candidate, std::move(made)).first->second.get();
}

// Only this rank may have prepared these calls. Its classes and slots are dropped, because other ranks would count
// calls differently.
void DeviceCommunicator::forget_ready() {
  if (autotuning_ == nullptr) return;
  for (std::unique_ptr<Prepared>* slot : readied_)
    if (*slot != nullptr) retire(std::move(*slot));
  readied_.clear();
  autotuning_->forget();
}

// Once the class is settled, the prepared state of the result replaces the slot, as for calls without autotuning.
void DeviceCommunicator::make_tuned(const Call& call, const CommunicatorOptions& options) {
  if (autotuning_ == nullptr) return;
  readied_.clear();
  autotuning_->keep();
  const DeviceAutotuning::Turn* turn = autotuning_->decided(call);
  if (turn == nullptr) return;
  std::unique_ptr<Prepared>& slot = slot_of(key_of(call, options));
  if (turn->settled && slot->tuned != nullptr) {
    std::unique_ptr<Prepared> kept = std::move(slot->tried[turn->candidate]);
    slot->tried.erase(turn->candidate);
    retire(std::exchange(slot, std::move(kept)));
  }
  autotuning_->made(call);
}

Status DeviceCommunicator::start_timing(const Call& call, DeviceStream stream) {
  return autotuning_ == nullptr || order_.is_captured() ? Status() : autotuning_->start_timing(call, stream);
}

Status DeviceCommunicator::end_timing(DeviceStream stream) {
  return autotuning_ == nullptr ? Status() : autotuning_->end_timing(stream);
}

}  // namespace tutti
