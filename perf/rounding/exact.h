// Inputs of ranks, results in float64, and the errors of rounding each of them once.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "perf/rounding/data.h"
#include "src/compression/format.h"
#include "src/executor/program.h"
#include "src/plan/problem.h"

namespace tutti::rounding {

inline constexpr std::uint64_t kMinScaleBlock = 32;  // Elements of the shortest scale block.

// Reads `count` elements of a type.
std::vector<float> read(DataType type, const std::byte* memory, std::uint64_t count);

// Returns the values after encoding and decoding them once.
std::vector<float> rounded(CompressionFormat format, DataType type, const std::vector<float>& values);

// Relative root mean square error of rounding inputs and results once.
struct Roundings {
  double input = 0;
  double output = 0;
};

class Exact {
 public:
  // `count`: elements per block.
  Exact(const Problem& problem, const Terms& terms, std::uint64_t count);

  std::byte* input(Rank rank) { return inputs_[rank].data(); }
  // Returns the part of results() that is the rank's output; empty if it has no output.
  std::span<const double> output(Rank rank) const;
  const std::vector<double>& results() const { return results_; }
  // Largest magnitude in each kMinScaleBlock elements, of results and of their terms.
  const std::vector<float>& peaks() const { return peaks_; }
  // Sum of the squares of all finite terms.
  double squares() const { return squares_; }
  Roundings roundings(CompressionFormat format) const;

 private:
  Problem problem_;
  DataType type_;
  std::uint64_t count_;
  double squares_ = 0;
  std::vector<std::vector<std::byte>> inputs_;
  std::vector<double> results_;
  std::vector<float> peaks_;
};

}  // namespace tutti::rounding
