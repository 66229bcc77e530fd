// Interface of an algorithm: pure functions over logical ranks and units. An algorithm never sees bytes, types,
// channels, chunks, slices or slots. One proof therefore holds for every size, and pipelining needs no code in the
// algorithm.
#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/cost_law.h"
#include "src/plan/problem.h"
#include "src/plan/step.h"

namespace tutti {

// A block is cut into `units` equal parts. Unit u is [u * count / units, (u + 1) * count / units), rounded down, so
// that a coarser cut is always a union of finer ones. A unit may be empty.
struct Shape {
  std::uint32_t units = 1;    // Per block.
  std::uint32_t scratch = 0;  // Units of scratch per rank.
  std::uint32_t rounds = 0;
  // First round of each stage; starts with 0. In a pipelined loop a stage runs a chunk behind the previous one, so that
  // messages which it receives may be in transit.
  std::vector<std::uint32_t> stages;
};

class Algorithm {
 public:
  virtual ~Algorithm() = default;
  virtual const char* name() const = 0;     // "ring", unique per collective.
  virtual const char* summary() const = 0;  // One line: method, rounds and bytes per rank, source.
  virtual bool supports(const Problem& problem) const = 0;
  // shape(), emit(), supports_compression() and cost_law() require supports(problem).
  virtual Shape shape(const Problem& problem) const = 0;
  // Appends the steps of `self` in `round`. Steps run in the order in which they are appended.
  virtual void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const = 0;
  // Returns whether all ranks end with the same bits although messages are compressed. This requires that one rank has
  // each complete sum, stores it as it sends it (see RoundedStores), and that other ranks forward it.
  virtual bool supports_compression(const Problem& /*problem*/) const { return true; }
  // Returns the cost law of the plans of all ranks, without emitting them. Takes at most O(hosts) time.
  virtual CostLaw cost_law(const Problem& problem) const = 0;
};

}  // namespace tutti
