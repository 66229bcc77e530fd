// Errors of a rank's results relative to exact results.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "perf/rounding/exact.h"

namespace tutti::rounding {

struct Errors {
  std::uint64_t elements = 0;  // Elements whose value and exact result are finite. Sums over these:
  double errors = 0;           // Squares of errors.
  double results = 0;          // Squares of exact results.
  double values = 0;           // Squares of values.
  double products = 0;         // Products of value and exact result.
  double difference = 0;       // Errors.
  double peak = 0;             // Maximum error relative to the largest magnitude of its block.
  // Exact results that are NaN or infinite. lost: the value is finite. wrong: the value is not the one that the format
  // specifies.
  std::uint64_t lost = 0;
  std::uint64_t wrong = 0;
  // Finite exact results whose value is infinite or NaN. spoilt: the block has an exact result that is not finite.
  // stray: other blocks.
  std::uint64_t spoilt = 0;
  std::uint64_t stray = 0;

  double relative() const;  // Root mean square of errors, relative to that of results.
  double bias() const;      // Mean error, relative to the root mean square of results.
  double cosine() const;
};

// Encoding of numbers that are not finite.
struct FormatTraits {
  std::uint64_t block = 1;  // Number of elements that become NaN together.
  bool has_infinity = false;
};
FormatTraits format_traits_of(CompressionFormat format);

// Adds the errors of a rank's values. `results` must point into exact.results().
void add_errors(const Exact& exact, std::span<const double> results, const std::vector<float>& values,
                CompressionFormat format, Errors& errors);

}  // namespace tutti::rounding
