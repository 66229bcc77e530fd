// Calls that are on trial: which may try what, and which way each goes.
#include <algorithm>
#include <string>
#include <utility>

#include "src/communicator/device/device_communicator.h"

namespace tutti {
namespace {

// What a trial may take of the device for scratch where the first choice takes less.
constexpr std::uint64_t kMostScratchBytes = 1 << 20;

std::uint64_t scratch_bytes(const Algorithm& algorithm, const Query& query) {
  const Shape shape = algorithm.shape(query.problem);
  return shape.scratch == 0 ? 0 : (shape.scratch / shape.units + 1) * query.block_bytes;
}

}  // namespace

// Ranks of other hosts do not see the board.
void DeviceCommunicator::prepare_to_learn() {
  if (ranks_ == 1 || neighbours_.network() || options().has_plugin()) return;
  const auto make_timer = [this] { return device().make_timer(); };
  learning_ =
      std::make_unique<DeviceLearning>(options(), DeviceLearning::Means{board(), rank_, make_timer, place_of_trials()});
  learning_->show_kept();
}

// "0.1.0, 4 ranks on NVIDIA H200 each, 32 teams": of rank 0's device.
std::string DeviceCommunicator::place_of_trials() const {
  if (options().tune_file.empty()) return "";
  const std::string& name = device().traits().name;
  std::string place = options().version + ", " + std::to_string(ranks_) + " ranks on " +
                      name.substr(0, name.find(" (device")) + (neighbours_.on_one_device() ? "" : " each") + ", " +
                      std::to_string(neighbours_.teams()) + " teams";
  if (neighbours_.in_turns()) place += " in turns";
  if (neighbours_.through_host()) place += ", by memory of the host";
  if (rounds_.only_rings) place += ", links along rings";
  return place;
}

bool DeviceCommunicator::learns(const Call& call, const CommunicatorOptions& options) const {
  return learning_ != nullptr && is_tried(call, options) &&
         wire_request(call, options, ranks_).wire == WireFormat::none;
}

// Seen from what all ranks share: there is room for its lanes, and it takes little memory that it would not take
// otherwise.
bool DeviceCommunicator::may_be_tried(const Candidate& candidate, const Query& query) {
  if (candidate.choice.wire != WireFormat::none) return false;
  const Algorithm& algorithm = *find(query.problem.collective, candidate.choice.algorithm);
  return lanes_fit(algorithm, query.problem, embedding_for(query.problem)) &&
         scratch_bytes(algorithm, query) <= kMostScratchBytes;
}

Result<std::unique_ptr<DeviceCommunicator::Prepared>> DeviceCommunicator::prepare_learning(
    const Call& call, const CommunicatorOptions& options) {
  const Problem problem = TUTTI_TRY(problem_for(call, options));
  const Query query = TUTTI_TRY(query_of(call, problem, options));
  std::vector<Candidate> all = TUTTI_TRY(candidates(query));
  // Nothing measured says whether a call is rounded: under a bound that is as predicted.
  if (all.empty() || all.front().choice.wire != WireFormat::none) return prepare(call, options, nullptr);
  const auto refused = [&](const Candidate& candidate) { return !may_be_tried(candidate, query); };
  all.erase(std::remove_if(all.begin() + 1, all.end(), refused), all.end());
  DeviceLearning::Class& learned = learning_->class_of(query, std::move(all));
  if (learned.settled()) return prepare(call, options, &learned.contest.next());
  auto on_trial = std::make_unique<Prepared>();
  on_trial->learned = &learned;
  return on_trial;
}

// One may have taken the slot meanwhile, in a group, whose call comes behind the verdict. What cannot be cut to fit its
// lanes cannot on any rank: then all go by the first choice.
Result<DeviceCommunicator::Prepared*> DeviceCommunicator::tried(std::unique_ptr<Prepared>& slot, const Call& call,
                                                                const CommunicatorOptions& options,
                                                                const DeviceLearning::Turn& turn) {
  if (slot->learned == nullptr) {
    if (turn.settled) return slot.get();
    auto on_trial = std::make_unique<Prepared>();
    on_trial->key = slot->key;
    on_trial->learned = turn.learned;
    retire(std::move(slot));
    slot = std::move(on_trial);
  }
  std::unique_ptr<Prepared>& tried = slot->tried[turn.candidate];
  if (tried != nullptr) return tried.get();
  const std::vector<Candidate>& all = turn.learned->contest.candidates;
  auto made = prepare(call, options, &all[turn.candidate].choice);
  if (!made.ok()) {
    Status why = std::move(made).status();
    if (why.code() != Code::unsupported) return why;
    made = prepare(call, options, &all.front().choice);
  }
  tried = TUTTI_TRY(std::move(made));
  tried->key = slot->key;
  return tried.get();
}

// Behind the verdict what it says takes the slot, and calls of this shape are as any others.
void DeviceCommunicator::make_tried(const Call& call, const CommunicatorOptions& options) {
  const DeviceLearning::Turn* turn = learning_ == nullptr ? nullptr : learning_->decided(call);
  if (turn == nullptr) return;
  std::unique_ptr<Prepared>& slot = slot_of(key_of(call, options));
  if (turn->settled && slot->learned != nullptr) {
    std::unique_ptr<Prepared> kept = std::move(slot->tried[turn->candidate]);
    slot->tried.erase(turn->candidate);
    retire(std::exchange(slot, std::move(kept)));
  }
  learning_->made(call);
}

Status DeviceCommunicator::start_timing(const Call& call, DeviceStream stream) {
  return learning_ == nullptr || capture_ != 0 ? Status() : learning_->start_timing(call, stream);
}

Status DeviceCommunicator::end_timing(DeviceStream stream) {
  return learning_ == nullptr ? Status() : learning_->end_timing(stream);
}

}  // namespace tutti
