// Autotuning of one class of calls: selects which candidate each operation uses, and finally the fastest. The class has
// no side effects: callers pass durations in and exchange sums between ranks.
//
// Operations are counted, and all ranks make the same calls in the same order. All ranks therefore use the same
// candidate for the same operation. Durations differ between ranks, so each stage ends with sums over all ranks, per
// burst, from which all ranks draw the same conclusion. The caller computes these sums.
//
// A caller that enqueues operations before earlier durations are known requests candidates by operation number within
// the stage. Durations are passed in later, in the order of the operations; some operations need not be timed. One rank
// concludes, and the others follow from the same operation on.
//
// Stages:
// - idle: some operations use the default, so that rarely used calls are not tuned;
// - glance: one short burst per candidate; excludes slow ones;
// - first: alternating bursts; excludes slower ones;
// - rest: more bursts of the remaining candidates, then the result.
//
// The first operations of a burst are not counted: they create plans and lanes, and absorb effects of preceding
// operations on caches and links.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace tutti {

struct AutotunerOptions {
  std::uint32_t max_candidates = 8;
  double margin = 2;              // Maximum predicted time relative to the best candidate.
  double budget_us = 250'000;     // Maximum predicted extra time of all candidates over the best one.
  std::uint32_t idle = 16;        // Operations before tuning begins.
  double burst_us = 200;          // Predicted duration of a burst.
  std::uint32_t min_counted = 3;  // Minimum and maximum of counted operations of a burst.
  std::uint32_t max_counted = 100;
  double glance_cutoff = 2;       // Maximum time relative to the best one after the glance.
  double first_cutoff = 1.25;     // The same after the first bursts.
  double min_improvement = 0.99;  // Maximum time, relative to the default, of a candidate that replaces it.
  double min_win_share = 0.75;    // Minimum share of rounds in which it must be faster; excludes noise.
  // Ranks run ahead of each other, as in calls with a root. The time of a few operations is then meaningless: bursts
  // are long, and a glance is half a burst.
  bool run_ahead = false;
  // Consecutive operations per sample of the glance, which takes the fastest sample. On oversubscribed cores, a rank
  // that has waited for all others is fast in its next operation, so a single operation is not representative.
  std::uint32_t spell = 1;
  std::uint32_t max_after_glance = 8;  // Maximum candidates after the glance: the fastest, and the default.
};

// Parameters for calls with or without a root, and with or without oversubscribed cores. A burst must be longer than
// the ranks' lead over each other, and longer than some time slices of the scheduler.
AutotunerOptions autotuner_options(bool rooted, bool oversubscribed);
// Parameters for devices. Timing in streams takes events, so bursts need few of them. No operations before tuning.
AutotunerOptions autotuner_options_for_gpus(bool rooted);

class Autotuner {
 public:
  // `predicted_us`: predicted times of the candidates, fastest first; the same on all ranks.
  explicit Autotuner(std::span<const double> predicted_us, const AutotunerOptions& terms = {});

  bool settled() const { return stage_ == Stage::settled; }
  // Candidate for the next operation, an index into `predicted_us`. Once settled: the result.
  std::size_t next() const { return remaining_[position_]; }
  bool tries(std::size_t candidate) const;  // True if the candidate may still be the result.
  // Records the duration of an operation on this rank. If it returns true, a stage has ended, and conclude() must
  // precede the next operation.
  bool record(std::int64_t duration_ns);
  // Like record(), for an operation that was not timed on this rank.
  bool skip();
  // Burst times on this rank, for each remaining candidate and burst; 0: not timed. conclude() takes the sums over all
  // ranks, with 0 where any rank has 0. If a candidate has only zeroes, tuning is given up.
  std::vector<std::uint64_t> measurements() const;
  void conclude(std::span<const std::uint64_t> sums_ns, std::uint32_t ranks);

  // ---- For callers that enqueue ahead ----
  static constexpr std::size_t kMaxFollowed = 8;                     // Maximum number of candidates.
  static constexpr std::size_t kMaxMeasurements = 7 * kMaxFollowed;  // Maximum size of measurements().
  struct Trial {
    std::size_t candidate = 0;
    bool tried = false;   // Part of the stage; must be reported by record() or skip().
    bool counts = false;  // Its duration is part of the measurement.
  };
  // Candidate of operation number `operation` (from 0) of the stage. Operations after its end use the first remaining
  // candidate.
  Trial trial_at(std::uint64_t operation) const;
  // Result of the last conclude(), for ranks that follow and are still in the stage that it ended.
  std::uint16_t outcome() const;
  void follow(std::uint16_t outcome);

  void settle(std::size_t winner);  // Ends tuning without measurements.
  // Ends tuning early with the first remaining candidate. Discards all measurements.
  void give_up();

  // Measured mean over the ranks in us, per candidate; 0: not measured.
  const std::vector<double>& measured_us() const { return measured_us_; }
  // Maximum number of operations until there is a result. For tests.
  std::uint32_t max_operations() const;

 private:
  enum class Stage : std::uint8_t { idle, glance, first, rest, settled };
  struct Extent {
    std::uint32_t rounds, uncounted, counted;  // Bursts per candidate; operations per burst.
  };
  Extent extent(Stage stage) const;
  std::uint32_t operations(Stage stage) const;  // Per candidate.
  bool end_operation();
  bool end_burst();
  void begin_burst();
  void enter(Stage stage);
  void proceed(Stage stage);
  void keep_best(std::span<const double> sums);
  std::size_t winner_of(std::span<const std::uint64_t> sums_ns) const;
  bool beats_first(std::size_t position, std::span<const std::uint64_t> sums_ns) const;

  AutotunerOptions terms_;
  std::uint32_t counted_ = 0;  // Counted operations per burst.
  std::size_t tried_ = 1;      // Number of candidates in the tuning.
  std::vector<std::size_t> remaining_;
  std::vector<std::vector<std::uint64_t>> bursts_;  // [candidate]: ns per operation of each burst.
  std::vector<double> measured_us_;
  Stage stage_ = Stage::idle;
  std::size_t position_ = 0;       // Index into remaining_.
  std::uint32_t round_ = 0;        // Within the stage.
  std::uint32_t operation_ = 0;    // Within the burst.
  std::uint32_t timed_ = 0;        // Counted and timed operations of the burst.
  std::uint32_t spell_timed_ = 0;  // Counted and timed operations of the current spell.
  std::uint64_t sum_ns_ = 0;
  std::uint64_t spell_ns_ = 0;
  std::uint64_t min_ns_ = 0;  // ns per operation in the fastest spell of the burst.
};

}  // namespace tutti
