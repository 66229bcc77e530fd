// Candidates for the calls of a class, of which one is kept after a trial (src/tuner/autotuner.h), and what is kept
// between runs: what communicators do alike, wherever the memory of their ranks lies. How ranks agree is their own
// affair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/communicator/communicator.h"
#include "src/tuner/autotuner.h"
#include "src/tuner/candidates.h"
#include "src/tuner/tune_cache.h"

namespace tutti {

// Whether a call is one to learn from: the same answer on every rank. `options`: of the handle it came through.
bool is_tunable(const Call& call, const CommunicatorOptions& options);

// Calls of one collective whose blocks are of about one size.
struct ClassOfCalls {
  Collective collective = Collective::all_reduce;
  std::uint32_t size_class = 0;
  bool mapped = false;  // In memory that all ranks reach.
};

struct TuningClass {
  std::vector<Candidate> candidates;  // For the size of the first call.
  Autotuner autotuner;
  const Choice& next() const { return candidates[autotuner.next()].choice; }
  bool measured() const { return autotuner.settled() && autotuner.measured_us()[autotuner.next()] > 0; }
};
TuningClass tuning_class_of(std::vector<Candidate> candidates, const AutotunerOptions& terms);
// Saved form of a settled class.
TunedClass tuned_of(const ClassOfCalls& calls, const TuningClass& tuning);
// Logs one that is settled.
void report(const ClassOfCalls& calls, const TuningClass& tuning);
// Tells sets of candidates apart, in whatever order they are.
std::uint32_t code_of(std::span<const Candidate> candidates);

// Which candidate of each class earlier runs have kept: rank 0 reads it from a file, tells the others, and adds to the
// file what this run has kept.
class SavedTuning {
 public:
  static constexpr std::uint32_t kSizeClasses = 128;
  // Codes of candidates, of calls through lanes and of mapped ones; 0: none.
  struct Kept {
    std::uint32_t lanes = 0, mapped = 0;
  };
  static constexpr std::size_t kClasses = std::size_t{kCollectives} * kSizeClasses;

  // `place`: what of the machine and the ranks lets another run take what was kept here, in one line.
  SavedTuning(const CommunicatorOptions& options, Rank rank, std::string place);

  // Whether it has to be told yet: as the table is on rank 0.
  bool unreported() const { return unsent_; }
  std::span<Kept> table() { return kept_; }
  void read();  // Reads the file before results are broadcast. Logs errors of the file.
  void reported() { unsent_ = false; }

  // Ends the trial where one of its candidates was kept.
  void settle(const ClassOfCalls& calls, TuningClass& tuning) const;
  // Adds these classes to the file, on rank 0. Logs errors of the file.
  void write(std::vector<TunedClass> classes) const;

 private:
  const std::string file_;
  const std::string machine_;
  const Rank rank_;
  bool unsent_;
  std::vector<Kept> kept_;  // Results of all classes of all collectives; empty without a file.
};

}  // namespace tutti
