// How far what a rank has is from what it should have.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "perf/rounding/exact.h"

namespace tutti::rounding {

struct Errors {
  std::uint64_t elements = 0;  // Finite, and so the exact ones.
  double errors = 0;           // Sums over these: of squares of errors,
  double results = 0;          // of squares of exact results,
  double values = 0;           // of squares of what is there,
  double products = 0;         // of each times the exact,
  double difference = 0;       // and of the errors.
  double peak = 0;             // The largest error, by the largest magnitude of its block.
  // Where the exact result is not finite: how many are, which is a loss, and how many are another kind of these than
  // the format says.
  std::uint64_t lost = 0;
  std::uint64_t wrong = 0;
  // Finite results that have become infinite or NaN: in the block of one that is so, and elsewhere.
  std::uint64_t spoilt = 0;
  std::uint64_t stray = 0;

  double relative() const;  // The root of the mean square of errors over that of results.
  double bias() const;      // The mean error over that root.
  double cosine() const;
};

// Treatment of numbers that are not finite.
struct FormatTraits {
  std::uint64_t block = 1;  // So many elements become NaN together.
  bool has_infinity = false;
};
FormatTraits format_traits_of(CompressionFormat format);

// Adds what one rank has. `results` is part of exact.results().
void add_errors(const Exact& exact, std::span<const double> results, const std::vector<float>& values,
                CompressionFormat format, Errors& errors);

}  // namespace tutti::rounding
