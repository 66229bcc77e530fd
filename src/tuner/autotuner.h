// The trial of some candidates by what calls really take: which of them the next operation runs as, and which one is
// kept. Pure: durations are handed in, and what ranks have to tell each other is handed out.
//
// Operations are counted, and all ranks make the same calls in the same order: so all try the same candidate at the
// same operation. Each rank has durations of its own; a stage of the trial therefore ends with sums over all ranks, of
// each burst, from which everybody draws the same conclusion. How they are summed up is the caller's business.
//
// Who enqueues operations ahead of what they take asks for the candidate of each by its number in the stage, and hands
// in durations later, in the order of the operations; some may be nobody's to time. One rank draws the conclusion
// there, and the others follow it, from the same operation on.
//
// The stages: some operations pass by the first choice, so that what is called a few times is never tried. Then each
// candidate gets a glance, after which those far behind are out; then bursts by turns, after which those behind are
// out; then more bursts of the rest, and a verdict. The first operations of a burst are not counted: they make plans
// and lanes, and end what others have left in the caches and on the links.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace tutti {

struct AutotunerOptions {
  std::uint32_t max_candidates = 8;
  double margin = 2;              // Predicted to take more than this times the best: not tried.
  double budget_us = 250'000;     // That all candidates but the best may cost more than it, as predicted.
  std::uint32_t idle = 16;        // Operations before the trial.
  double burst_us = 200;          // That a burst is to last, as predicted,
  std::uint32_t min_counted = 3;  // in so many operations,
  std::uint32_t max_counted = 100;
  double far_behind = 2;  // Times the best, after the glance.
  double behind = 1.25;   // Likewise, after the first bursts.
  double better = 0.99;   // Times the first choice: what replaces it takes no more than this,
  double oftener = 0.75;  // and less in so much of the rounds: else they differ by noise.
  // Ranks run ahead of each other, as on the way from or to a root: a few operations say nothing of what one takes, so
  // that bursts are long, and a glance is half a burst.
  bool run_ahead = false;
  // Operations in a row, of which the glance takes the quickest: where ranks share cores, who has waited for all others
  // is quick in the next one, so the quickest operation says nothing of what one takes.
  std::uint32_t spell = 1;
  std::uint32_t max_after_glance = 8;  // Candidates, the best of them and the first choice.
};

// Of calls with a root or without, of ranks that share cores or do not: a burst is to outlast what ranks run ahead, and
// some turns of the scheduler.
AutotunerOptions autotuner_options(bool rooted, bool oversubscribed);
// The same of calls on devices, which are timed in their streams: that takes marks, of which a burst is to need few.
// Without operations before the trial.
AutotunerOptions autotuner_options_for_gpus(bool rooted);

class Autotuner {
 public:
  // What each candidate is predicted to take, the best first; the same on all ranks.
  explicit Autotuner(std::span<const double> predicted_us, const AutotunerOptions& terms = {});

  bool settled() const { return stage_ == Stage::settled; }
  // Of the next operation, an index into what was predicted. Once settled: the verdict.
  std::size_t next() const { return remaining_[turn_]; }
  bool tries(std::size_t candidate) const;  // It may still be the verdict.
  // An operation took so long on this rank. True: a stage has ended, and conclude() comes before the next operation.
  bool took(std::int64_t duration_ns);
  // The same for one that nobody has timed on this rank.
  bool passed();
  // What this rank has seen: of each candidate that is not out, each burst; 0: nothing. Summed up over all ranks, each,
  // or 0 where one of them has seen nothing; of a candidate of which that is all nobody can tell, and they give up:
  std::vector<std::uint64_t> seen() const;
  void conclude(std::span<const std::uint64_t> sums_ns, std::uint32_t ranks);

  // ---- For those who enqueue ahead ----
  static constexpr std::size_t kMaxFollowed = 8;             // Candidates that are tried,
  static constexpr std::size_t kMaxSeen = 7 * kMaxFollowed;  // and what there is of them in seen().
  struct Turn {
    std::size_t candidate = 0;
    bool tried = false;   // It is an operation of the stage: took() or passed() is told of it.
    bool counts = false;  // What it takes is part of what is seen.
  };
  // Of the stage's operation with this number, from 0. Those behind the last one go by the first that is not out.
  Turn turn_at(std::uint64_t operation) const;
  // What the last conclude() came to, for the others, which are in the stage that it ended.
  std::uint16_t outcome() const;
  void follow(std::uint16_t outcome);

  void settle(std::size_t winner);  // Without a trial.
  // Without its end: the first of those that are not out yet, and as if nothing had been measured.
  void give_up();

  // What the verdict was drawn from: the mean over the ranks, in us; 0: the candidate was not tried, or not known yet.
  const std::vector<double>& measured_us() const { return measured_us_; }
  // After so many operations there is a verdict.
  std::uint32_t longest() const;

 private:
  enum class Stage : std::uint8_t { idle, glance, first, rest, settled };
  struct Extent {
    std::uint32_t rounds, uncounted, counted;  // Bursts of each candidate; operations of a burst.
  };
  Extent extent(Stage stage) const;
  std::uint32_t operations(Stage stage) const;  // Of each candidate.
  bool end_operation();
  bool end_burst();
  void begin_burst();
  void enter(Stage stage);
  void proceed(Stage stage);
  void keep_best(std::span<const double> sums);
  std::size_t winner_of(std::span<const std::uint64_t> sums_ns) const;
  bool beats_first(std::size_t turn, std::span<const std::uint64_t> sums_ns) const;

  AutotunerOptions terms_;
  std::uint32_t counted_ = 0;  // Operations of a burst.
  std::size_t tried_ = 1;      // Candidates, the first ones.
  std::vector<std::size_t> remaining_;
  std::vector<std::vector<std::uint64_t>> bursts_;  // Of each candidate: nanoseconds of an operation.
  std::vector<double> measured_us_;
  Stage stage_ = Stage::idle;
  std::size_t turn_ = 0;           // Of the remaining ones.
  std::uint32_t round_ = 0;        // Of the stage.
  std::uint32_t operation_ = 0;    // Of the burst,
  std::uint32_t timed_ = 0;        // and of them those that count and were timed,
  std::uint32_t spell_timed_ = 0;  // of its spell, too.
  std::uint64_t sum_ns_ = 0;
  std::uint64_t spell_ns_ = 0;
  std::uint64_t min_ns_ = 0;  // Of an operation, in the quickest spell of the burst.
};

}  // namespace tutti
