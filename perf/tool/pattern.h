// The data of a checked run. Every element of every rank has a value of its own, small enough that all results are
// exact in the type in any order, so that outputs are compared bit by bit.
#pragma once

#include <cstdint>
#include <vector>

#include "perf/tool/collective.h"

namespace perf {

class Pattern {
 public:
  // `salt` differs between runs, so that what an earlier run left behind is wrong in this one.
  Pattern(const Element& element, const Operation& operation, int ranks, std::uint32_t salt);

  // Elements first, first + 1, ... of `rank`'s input, as bits in memory.
  void fill(void* memory, int rank, std::size_t first, std::size_t count) const;
  // How many elements of a rank's output are not what the collective should have put there.
  std::uint64_t wrong(const void* memory, const Collective& collective, const Position& position,
                      std::size_t count) const;
  // This rank's scalar for mulsum.
  static std::uint32_t scalar(int rank) { return rank % 2 == 0 ? 1 : 2; }

 private:
  std::uint32_t value(int rank, std::size_t index) const;
  std::uint32_t reduced(std::size_t index) const;

  const Element& element_;
  const Operation& operation_;
  std::uint32_t ranks_;
  std::uint32_t salt_;
  std::uint32_t active_;  // Ranks that contribute to an element; the others' value is neutral.
  std::uint32_t most_;    // Largest value of a rank.
  std::vector<std::uint64_t> bits_;
};

// What no element of a right output looks like: NaN or -1 in every type.
inline constexpr int kPoison = 0xff;

}  // namespace perf
