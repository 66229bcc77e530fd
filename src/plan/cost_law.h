// Cost law of an algorithm: messages and blocks per rank and per link, without bytes or times. The tuner predicts times
// from it. The head comment of each algorithm's file states the same law.
//
// Counts of a rank are for the rank with the most work, counts of a group for the group with the most work. Buffers are
// out of place. A flag counts as a message without data. Data that a rank stores in a peer's memory counts as sent, and
// data that it reads there counts as received.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace tutti {

// Traffic over the links of one level.
struct Traffic {
  double depth = 0;     // Messages of the longest chain in which each message waits for the one before.
  double chain = 0;     // Blocks in this chain.
  double stalls = 0;    // Part of `depth` that every chunk of a call waits for, even if there are other chunks.
  double sent = 0;      // Blocks sent by one rank.
  double received = 0;  // Blocks received by the same rank.
  double messages = 0;  // Messages that the rank sends and receives.
  double between = 0;   // Blocks that cross the border of a group in one direction. Unused in levels[0].

  bool operator==(const Traffic&) const = default;
};

struct CostLaw {
  static constexpr std::size_t kLevels = 4;

  // [0]: inside hosts. [i]: between the groups of Problem::groups[i - 1]. The last level includes everything beyond it.
  std::array<Traffic, kLevels> levels{};
  double folded = 0;   // Blocks that one rank adds to others.
  double copied = 0;   // Blocks that one rank copies within its own memory.
  double longest = 0;  // Blocks in the longest message; 0 if there are only flags.
  double peers = 0;    // Ranks to which every rank has lanes, if these are all ranks of a host or all ranks.
  // With compression: mean square error of a result, relative to one rounding of it, for terms that differ only in
  // sign; see Proof::rounded.
  double rounded = 1;
  std::uint64_t units = 1;  // Parts of a block.

  bool operator==(const CostLaw&) const = default;
};

// Returns the cost law of a problem whose block is one of `parts` parts of this block.
CostLaw divided(const CostLaw& cost_law, std::uint64_t parts);
// Returns the cost law of `first` followed by `next`.
CostLaw then(const CostLaw& first, const CostLaw& next);

}  // namespace tutti
