// What an algorithm is: pure functions over logical ranks and units. It never sees bytes, types, channels, chunks,
// slices or slots, so one proof serves every size and pipelining costs the author nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/cost_law.h"
#include "src/plan/problem.h"
#include "src/plan/step.h"

namespace tutti {

// Unit: a block is cut into `units` equal parts, unit u = [u * count / units, (u + 1) * count / units) rounded down,
// so that a coarser cut is always a union of finer ones. A unit may be empty.
struct Shape {
  std::uint32_t units = 1;    // Per block.
  std::uint32_t scratch = 0;  // Units of scratch per rank.
  std::uint32_t rounds = 0;
  std::vector<std::uint32_t> stages;  // First round of each; starts with 0. All lanes are empty between stages.
};

class Algorithm {
 public:
  virtual ~Algorithm() = default;
  virtual const char* name() const = 0;     // "ring", unique per collective.
  virtual const char* summary() const = 0;  // One line: what it does, rounds and bytes per rank, source.
  virtual bool supports(const Problem& problem) const = 0;
  virtual Shape shape(const Problem& problem) const = 0;  // Only for what it supports, as is emit().
  // Appends what `self` does in `round`. The order of steps is the order of obedience.
  virtual void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const = 0;
  // Whether all ranks end with the same bits where messages round what they carry: one rank has each whole sum, stores
  // it as it sends it (see Keeps), and others pass it on. Likewise.
  virtual bool bears_rounding(const Problem& /*problem*/) const { return true; }
  // What the plans of all ranks take, without looking at each: in a time that grows with the hosts, at most. Likewise.
  virtual CostLaw cost_law(const Problem& problem) const = 0;
};

}  // namespace tutti
