// Gaussian test data for compressed runs, whose expected error the library reports.
#pragma once

#include <cstddef>
#include <cstdint>

#include "perf/tool/elements.h"
#include "perf/tool/pattern.h"

namespace perf {

// Sums over elements.
struct Squares {
  double errors = 0;
  double results = 0;
  std::uint64_t digest = 0;  // Hash of the bytes.
};

class Noise {
 public:
  // For float, half and bfloat16. `salt` as in Pattern.
  Noise(const Element& element, const Operation& operation, int ranks, std::uint32_t salt)
      : element_(element), operation_(operation), ranks_(ranks), salt_(salt) {}

  // Fills host memory, like Pattern.
  void fill(void* memory, int rank, std::size_t count) const;
  Squares squares(const void* memory, const Output& output) const;

  // Largest accepted relative root-mean-square error for `results` elements, if `expected` is expected for sums. The
  // bound is wider for min, max and prod, and for few results, whose sums may be near 0.
  double max_error(double expected, std::uint64_t results) const;

 private:
  float at(int rank, std::size_t index) const;
  double reduced(std::size_t index) const;

  const Element& element_;
  const Operation& operation_;
  int ranks_;
  std::uint32_t salt_;
};

}  // namespace perf
