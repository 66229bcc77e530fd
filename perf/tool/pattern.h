// The data of a checked run. Every element of every rank has a value of its own, small enough that all results are
// exact in the type in any order, so that outputs are compared bit by bit.
#pragma once

#include <cstdint>
#include <vector>

#include "perf/tool/collective.h"
#include "perf/tool/values.h"

namespace perf {

class Pattern {
 public:
  // `salt` differs between runs, so that what an earlier run left behind is wrong in this one.
  Pattern(const Element& element, const Operation& operation, int ranks, std::uint32_t salt);

  // In the host's memory. Elements first, first + 1, ... of `rank`'s input, as bits.
  void fill(void* memory, int rank, std::size_t first, std::size_t count) const;
  // How many elements of a rank's output are not what the collective should have put there.
  std::uint64_t wrong(const void* memory, const Output& output) const;

  // Expected memory of a rank after a call with blocks of `count` elements.
  Output output(const Collective& collective, const Position& position, std::size_t count) const;

  // For those who do the same elsewhere: how each value looks in an element of so many bytes.
  const Values& values() const { return values_; }
  const std::vector<std::uint64_t>& bits() const { return bits_; }
  std::uint32_t element_bytes() const { return element_.size; }

  // This rank's scalar for mulsum.
  static std::uint32_t scalar(int rank) { return scalar_of(static_cast<std::uint32_t>(rank)); }

 private:
  const Element& element_;
  Values values_;
  std::vector<std::uint64_t> bits_;
};

// Byte that makes an element differ from every right result: NaN or -1 in every type.
inline constexpr int kPoison = 0xff;

}  // namespace perf
