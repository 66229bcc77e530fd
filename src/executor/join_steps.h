// Joins steps of a straight program that thread blocks run at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/executor/straighten.h"

namespace tutti {

// See StraightOptions::together. The program, and `launch`, must outlive it.
class StepJoiner {
 public:
  // `slots`: has_slots() of the program. `max_copies`: maximum operands on one side of a step.
  StepJoiner(StraightProgram& program, const Launch& launch, const StraightOptions& options, bool slots,
             std::uint32_t max_copies)
      : program_(program), launch_(launch), options_(options), slots_(slots), max_copies_(max_copies) {}

  // Appends a step, whose lanes and extents are the last of the program, or joins it to a previous step of its stage.
  void add(const StraightStep& step);
  void end_round() { round_ = program_.steps.size(); }

 private:
  bool join_ll_messages(const StraightStep& step);
  bool join_messages(const StraightStep& step);
  bool join_copies(const StraightStep& step);
  bool copies_messages(const StraightStep& step);
  bool are_independent(const StraightStep& previous, const StraightStep& step);
  void append(const StraightStep& step, StraightStep& previous);
  bool copies(const StraightStep& step, bool to_scratch);
  bool overlaps(const StraightStep& step, const StraightStep& other);
  std::uint64_t bytes_of(const StraightMemory& memory, const StraightStep& step) const;
  bool append_copies(const StraightStep& step, std::size_t s);

  StraightProgram& program_;
  const Launch& launch_;
  const StraightOptions options_;
  const bool slots_;
  const std::uint32_t max_copies_;
  std::size_t round_ = 0;  // First step of the round.
};

}  // namespace tutti
