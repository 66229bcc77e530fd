// Autotuning of classes of calls (src/tuner/autotuner.h), and results saved between runs. Common to communicators on
// host memory and on devices, which use different ways to agree between ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/communicator/call/call.h"
#include "src/communicator/call/options.h"
#include "src/tuner/autotuner.h"
#include "src/tuner/candidates.h"
#include "src/tuner/tune_cache.h"

namespace tutti {

// Returns whether autotuning applies to a call. Equal on all ranks. `options` are those of the handle. Measurements do
// not decide about compression.
bool is_tunable(const Call& call, const CommunicatorOptions& options, Rank ranks);

// Calls of one collective with blocks of similar size.
struct ClassOfCalls {
  Collective collective = Collective::all_reduce;
  std::uint32_t size_class = 0;
  bool mapped = false;  // The buffers are mapped by all ranks.
};

struct TuningClass {
  std::vector<Candidate> candidates;  // Candidates for the size of the first call.
  Autotuner autotuner;
  const Choice& next() const { return candidates[autotuner.next()].choice; }
  bool measured() const { return autotuner.settled() && autotuner.measured_us()[autotuner.next()] > 0; }
};
TuningClass tuning_class_of(std::vector<Candidate> candidates, const AutotunerOptions& terms);
// Returns the saved form of a settled class.
TunedClass tuned_of(const ClassOfCalls& calls, const TuningClass& tuning);
// Logs the result of a settled class.
void report(const ClassOfCalls& calls, const TuningClass& tuning);
// Returns a hash of a set of candidates, independent of their order.
std::uint32_t code_of(std::span<const Candidate> candidates);

// Candidates that earlier runs have kept for each class. Rank 0 reads them from a file, shares them with the other
// ranks, and adds the results of this run to the file.
class SavedTuning {
 public:
  static constexpr std::uint32_t kSizeClasses = 128;
  // Codes of candidates, for calls through lanes and for mapped calls; 0: none.
  struct Kept {
    std::uint32_t lanes = 0, mapped = 0;
  };
  static constexpr std::size_t kClasses = std::size_t{kCollectives} * kSizeClasses;

  // `machine` is the machine name under which results are saved; see machine_name.h.
  SavedTuning(const CommunicatorOptions& options, Rank rank, std::string machine);

  // Whether rank 0 still has to share the table.
  bool unreported() const { return unsent_; }
  std::span<Kept> table() { return kept_; }
  void read();  // Reads the file on rank 0. Must be called before the table is shared. Logs errors.
  void reported() { unsent_ = false; }

  // Ends autotuning of a class if one of its candidates was saved.
  void settle(const ClassOfCalls& calls, TuningClass& tuning) const;
  // Adds classes to the file on rank 0. Logs errors.
  void write(std::vector<TunedClass> classes) const;

 private:
  const std::string file_;
  const std::string machine_;
  const Rank rank_;
  bool unsent_;
  std::vector<Kept> kept_;  // Results of all classes of all collectives; empty without a file.
};

}  // namespace tutti
