// The data of a checked run. Values are small enough that all results are exact in the type in any order. Outputs are
// therefore compared bit by bit.
#pragma once

#include <cstdint>
#include <vector>

#include "perf/tool/collective.h"
#include "perf/tool/values.h"

namespace perf {

class Pattern {
 public:
  // `salt` differs between runs, so that leftovers of an earlier run are detected as wrong.
  Pattern(const Element& element, const Operation& operation, int ranks, std::uint32_t salt);

  // Fills host memory with the bits of elements first, first + 1, ... of `rank`'s input.
  void fill(void* memory, int rank, std::size_t first, std::size_t count) const;
  // Returns the number of wrong elements in a rank's output.
  std::uint64_t wrong(const void* memory, const Output& output) const;

  // Expected content of a rank's output after a call with blocks of `count` elements.
  Output output(const Collective& collective, const Position& position, std::size_t count) const;

  // For GpuPattern: the first 8 bytes of each value in an element; all other bytes are 0.
  const Values& values() const { return values_; }
  const std::vector<std::uint64_t>& bits() const { return bits_; }
  std::uint32_t element_bytes() const { return element_.size; }

  // The rank's scalar for mulsum.
  static std::uint32_t scalar(int rank) { return scalar_of(static_cast<std::uint32_t>(rank)); }

 private:
  const Element& element_;
  Values values_;
  std::vector<std::uint64_t> bits_;
};

// Byte that fills outputs before a call: NaN or -1 in every type, which is never a correct value.
inline constexpr int kPoison = 0xff;

}  // namespace perf
