// Recursive halving of ranks [0, n) for any n. A group [low, high) is split in the middle; the lower half has one rank
// more if the size is odd. Each rank is paired with its counterpart in the other half. The unpaired rank gives its
// share to the last rank of the upper half and receives nothing.
#pragma once

#include <algorithm>
#include <bit>

#include "algorithms/ranges.h"
#include "src/plan/algorithm.h"

namespace tutti {

// One rank's part in the split of its group after `depth` splits; empty if the rank is alone. A reduce-scatter sends
// the range `given` to `to` and receives `kept` from all of `from`. An all-gather sends `kept` to all of `from` and
// receives `given` from `to`.
struct Halving {
  Range kept, given;
  Rank to = 0;
  std::vector<Rank> from;
};

inline Halving halving(Rank n, Rank self, std::uint32_t depth) {
  Rank low = 0, high = n;
  const auto middle = [&] { return low + (high - low + 1) / 2; };
  for (; depth > 0 && high - low > 1; --depth) (self < middle() ? high : low) = middle();
  if (high - low == 1) return {};

  const Range lower{low, middle() - low}, upper{middle(), high - middle()};
  if (self < middle()) {
    const Rank i = self - low;
    if (i >= upper.count) return {lower, upper, high - 1, {}};
    return {lower, upper, middle() + i, {middle() + i}};
  }
  const Rank i = self - middle();
  const bool takes_odd = lower.count > upper.count && i + 1 == upper.count;
  return {upper, lower, low + i, takes_odd ? std::vector<Rank>{low + i, middle() - 1} : std::vector<Rank>{low + i}};
}

// True if exchanges are pipelined: round r receives in exchange r - 1 and sends in exchange r, and is a stage, so that
// messages of several chunks are in transit. For other numbers messages of a round would not be cut alike.
constexpr bool pipelines_exchanges(Rank n) { return n > 1 && std::has_single_bit(n); }

// Sets rounds and stages of log2(n) exchanges.
inline Shape exchange_shape(Shape shape, Rank n) {
  shape.rounds = std::max(1U, log2_rounded_up(n) + (pipelines_exchanges(n) ? 1U : 0U));
  shape.stages = {0};
  for (std::uint32_t round = 1; pipelines_exchanges(n) && round < shape.rounds; ++round) shape.stages.push_back(round);
  return shape;
}

}  // namespace tutti
