// What an algorithm asks of ranks and links, counted in messages and blocks: no bytes, no times. The tuner makes its
// predictions from it; the laws at the heads of the algorithms' files are the same ones.
//
// Counts of a rank are those of the one that has most to do, counts of a group likewise. Buffers are taken to be out of
// place. A flag is a message without data; what a rank stores into a peer's memory it sends, and what it reads there it
// receives.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace tutti {

// Over the links of one level.
struct Traffic {
  double depth = 0;     // Messages of the longest chain in which each waits for the one before.
  double chain = 0;     // Blocks in those.
  double stalls = 0;    // As depth, of those that every chunk of a call waits for, although there are others.
  double sent = 0;      // Blocks, by one rank.
  double received = 0;  // By the same.
  double messages = 0;  // That it sends and receives.
  double between = 0;   // Blocks that cross a group's border one way. [0] has none.

  bool operator==(const Traffic&) const = default;
};

struct CostLaw {
  static constexpr std::size_t kLevels = 4;

  // [0]: inside hosts. [i]: between the groups of Problem::groups[i - 1]; the last has all that goes farther.
  std::array<Traffic, kLevels> levels{};
  double folded = 0;   // Blocks that one rank adds to others.
  double copied = 0;   // Blocks that it copies within its own memory.
  double longest = 0;  // Blocks in the longest message; 0: there are flags alone.
  double peers = 0;    // Ranks that every rank has lanes to, where these are all of a host or all there are.
  // Where messages round: the mean square of the error of a result, for one rounding of it, of terms that are alike but
  // for their sign; see Proof::rounded.
  double rounded = 1;
  std::uint64_t units = 1;  // Parts into which a block is cut.

  bool operator==(const CostLaw&) const = default;
};

// Of a problem whose block is one of `parts` of the parent's.
CostLaw divided(const CostLaw& cost_law, std::uint64_t parts);
// One after the other.
CostLaw then(const CostLaw& first, const CostLaw& next);

}  // namespace tutti
