// Inputs of ranks, and exact results without rounding, in float64; and the error of one rounding of either.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "perf/rounding/data.h"
#include "src/compression/format.h"
#include "src/executor/program.h"
#include "src/plan/problem.h"

namespace tutti::rounding {

inline constexpr std::uint64_t kShortBlock = 32;  // Elements of the shortest block that has a scale of its own.

// So many elements of a type from one address.
std::vector<float> read(DataType type, const std::byte* memory, std::uint64_t count);

// Encoded and decoded once.
std::vector<float> rounded(CompressionFormat format, DataType type, const std::vector<float>& values);

// The error of one rounding, by the root of the mean square: of what ranks send first, and of what they send last.
struct Roundings {
  double input = 0;
  double output = 0;
};

class Exact {
 public:
  // Blocks of so many elements.
  Exact(const Problem& problem, const Terms& terms, std::uint64_t count);

  std::byte* input(Rank rank) { return inputs_[rank].data(); }
  // Where the rank's output lies in results(); no elements if it has none.
  std::span<const double> output(Rank rank) const;
  const std::vector<double>& results() const { return results_; }
  // The largest magnitude of each short block of the results, or of any term of theirs.
  const std::vector<float>& peaks() const { return peaks_; }
  // The sum of the squares of all terms that are finite.
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
