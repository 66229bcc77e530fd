// Autotuning of classes of calls (src/tuner/autotuner.h), and results saved between runs. Common to host memory and
// devices, which differ in how they measure and how their ranks agree:
//   HostAutotuning     a call waits for its end; ranks sum up their measurements by a collective
//   DeviceAutotuning   calls are enqueued ahead; ranks publish measurements on the board and switch over later
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
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
  auto operator<=>(const ClassOfCalls&) const = default;
};

struct TuningClass {
  TuningClass(const ClassOfCalls& of, std::vector<Candidate> all, const AutotunerOptions& terms);

  const Choice& next() const { return candidates[autotuner.next()].choice; }
  bool measured() const { return autotuner.settled() && autotuner.measured_us()[autotuner.next()] > 0; }
  TunedClass result() const;  // The saved form of a settled class.
  void log_result() const;    // Requires a settled class.

  ClassOfCalls calls;
  std::vector<Candidate> candidates;  // Candidates for the size of the first call.
  Autotuner autotuner;
};

// Calls with equal keys are tuned together. The second number is a hash of the candidates, independent of their order.
using TuningKey = std::pair<ClassOfCalls, std::uint32_t>;
TuningKey tuning_key(const ClassOfCalls& calls, std::span<const Candidate> candidates);

// Candidates that earlier runs have saved for each class. Rank 0 reads them from a file, shares them with the other
// ranks, and adds the results of this run to the file.
class SavedTuning {
 public:
  static constexpr std::uint32_t kSizeClasses = 128;
  // Codes of candidates, for calls through lanes and for mapped calls; 0: none.
  struct SavedCodes {
    std::uint32_t lanes = 0, mapped = 0;
  };
  static constexpr std::size_t kClasses = std::size_t{kCollectives} * kSizeClasses;

  // `machine` is the machine name under which results are saved; see machine_name.h.
  SavedTuning(const CommunicatorOptions& options, Rank rank, std::string machine);

  // Whether rank 0 still has to share the table.
  bool needs_sharing() const { return needs_sharing_; }
  std::span<SavedCodes> table() { return codes_; }
  void read();  // Reads the file on rank 0. Must be called before the table is shared. Logs errors.
  void mark_shared() { needs_sharing_ = false; }

  // Ends autotuning of a class if one of its candidates was saved.
  void settle(TuningClass& tuning) const;
  // Adds the measured classes to the file on rank 0. Logs errors.
  void write(const std::vector<const TuningClass*>& classes) const;

 private:
  const std::string file_;
  const std::string machine_;
  const Rank rank_;
  bool needs_sharing_;
  std::vector<SavedCodes> codes_;  // Results of all classes of all collectives; empty without a file.
};

}  // namespace tutti
