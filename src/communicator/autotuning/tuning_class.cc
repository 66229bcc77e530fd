#include "src/communicator/autotuning/tuning_class.h"

#include <mutex>
#include <set>
#include <string>

#include "src/base/duration.h"
#include "src/base/hash.h"
#include "src/base/log.h"
#include "src/communicator/planning/planning.h"

namespace tutti {
namespace {

// Integers wrap around and bool has two values, so their sums and products are the same in any order. Floats are
// rounded at each step.
bool is_exact(const Call& call) {
  return !reduces(call.collective) || call.type < DataType::float16 || call.type == DataType::boolean;
}

std::string describe(const Choice& choice) {
  return std::string(choice.algorithm) + (choice.mapped ? "" : std::string(" ") + name(choice.protocol));
}

std::size_t number_of(Collective collective, std::uint32_t size_class) {
  return static_cast<std::size_t>(collective) * SavedTuning::kSizeClasses + size_class;
}

std::uint32_t code_of(std::string_view algorithm, Protocol protocol) {
  return hashed(static_cast<std::uint32_t>(protocol) + 1, algorithm);
}

Autotuner autotuner_of(const std::vector<Candidate>& candidates, const AutotunerOptions& terms) {
  std::vector<double> predicted_us;
  for (const Candidate& candidate : candidates) predicted_us.push_back(candidate.predicted_us);
  return Autotuner(predicted_us, terms);
}

// Warns once per process and reason.
void warn_of_unsaved_results(const Status& status) {
  static auto& mutex = *new std::mutex;  // Never destroyed: communicators may end after the program's static objects.
  static auto& reported = *new std::set<std::string>;
  if (status.ok()) return;
  const std::lock_guard lock(mutex);
  if (reported.insert(status.message()).second)
    log(LogLevel::warn, "autotuning results are not saved to TUTTI_TUNE_FILE: %s", status.message().c_str());
}

}  // namespace

bool is_tunable(const Call& call, const CommunicatorOptions& options, Rank ranks) {
  return ranks > 1 && options.tune != Tune::off && !options.has_plugin() && call.kind == Kind::collective &&
         call.count > 0 && (options.algorithm.empty() || options.algorithm == kCopyEngines) &&
         options.protocol.empty() && (options.tune == Tune::all || is_exact(call)) &&
         compression_request(call, options, ranks).compression == CompressionFormat::none;
}

TuningClass::TuningClass(const ClassOfCalls& of, std::vector<Candidate> all, const AutotunerOptions& terms)
    : calls(of), candidates(std::move(all)), autotuner(autotuner_of(candidates, terms)) {}

TunedClass TuningClass::result() const {
  TunedClass tuned;
  tuned.collective = calls.collective;
  tuned.size_class = calls.size_class;
  tuned.mapped = calls.mapped;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    tuned.candidates.push_back({std::string(candidate.choice.algorithm), candidate.choice.protocol,
                                candidate.choice.chunk_bytes, candidate.choice.channels, candidate.predicted_us,
                                autotuner.measured_us()[i]});
  }
  std::swap(tuned.candidates.front(), tuned.candidates[autotuner.next()]);
  return tuned;
}

void TuningClass::log_result() const {
  if (!logs(LogLevel::info)) return;
  const auto& measured_us = autotuner.measured_us();
  std::string others;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i == autotuner.next() || measured_us[i] == 0) continue;
    others += ", " + describe(candidates[i].choice) + " " + describe_us(measured_us[i]);
  }
  log(LogLevel::info, "%s from %llu bytes on%s by %s: %s%s", name(calls.collective),
      static_cast<unsigned long long>(min_bytes(calls.size_class)),
      calls.mapped ? ", in memory that ranks can map," : "", describe(next()).c_str(),
      describe_us(measured_us[autotuner.next()]).c_str(), others.c_str());
}

TuningKey tuning_key(const ClassOfCalls& calls, std::span<const Candidate> candidates) {
  std::uint32_t sum = 0;
  for (const Candidate& candidate : candidates)
    sum += mix(code_of(candidate.choice.algorithm, candidate.choice.protocol));
  return {calls, sum};
}

SavedTuning::SavedTuning(const CommunicatorOptions& options, Rank rank, std::string machine)
    : file_(options.tune_file),
      machine_(std::move(machine)),
      rank_(rank),
      needs_sharing_(options.tune != Tune::off && !options.tune_file.empty()) {}

void SavedTuning::read() {
  codes_.resize(kClasses);
  if (rank_ != 0) return;
  auto cache = read_tune_cache(file_);
  if (!cache.ok()) {
    log(LogLevel::warn, "TUTTI_TUNE_FILE is ignored: %s", std::move(cache).status().message().c_str());
    return;
  }
  warn_of_unsaved_results(check_can_create(file_));
  const TuneCache::Machine* machine = cache.value().find(machine_);
  if (machine == nullptr) return;
  for (const TunedClass& tuned : machine->classes) {
    SavedCodes& codes = codes_[number_of(tuned.collective, tuned.size_class)];
    const TunedCandidate& first = tuned.candidates.front();
    (tuned.mapped ? codes.mapped : codes.lanes) = code_of(first.algorithm, first.protocol);
  }
}

// If the saved result is not among the candidates, it is ignored.
void SavedTuning::settle(TuningClass& tuning) const {
  if (codes_.empty()) return;
  const SavedCodes& of_class = codes_[number_of(tuning.calls.collective, tuning.calls.size_class)];
  const std::uint32_t saved = tuning.calls.mapped ? of_class.mapped : of_class.lanes;
  for (std::size_t i = 0; i < tuning.candidates.size(); ++i) {
    const Choice& choice = tuning.candidates[i].choice;
    if (code_of(choice.algorithm, choice.protocol) == saved) return tuning.autotuner.settle(i);
  }
}

void SavedTuning::write(const std::vector<const TuningClass*>& classes) const {
  if (rank_ != 0 || file_.empty()) return;
  TuneCache::Machine machine = {machine_, {}};
  for (const TuningClass* tuning : classes)
    if (tuning->measured()) machine.classes.push_back(tuning->result());
  if (machine.classes.empty()) return;
  warn_of_unsaved_results(add_to_tune_cache(file_, machine));
}

}  // namespace tutti
