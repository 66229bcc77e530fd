// The shape of a collective call, and which blocks of which memory it speaks of. No bytes, type or operation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/rank.h"
#include "src/base/status.h"

namespace tutti {

enum class Collective : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter,
};
inline constexpr std::uint32_t kCollectives = 8;

const char* name(Collective collective);  // "all_reduce"
Result<Collective> parse_collective(std::string_view text);

struct Problem {
  Collective collective = Collective::all_reduce;
  Rank ranks = 1;
  Rank root = 0;          // Of broadcast, reduce, gather, scatter.
  bool in_place = false;  // NCCL's conventions; see block_of_alias().
  // groups[0]: ranks per host; groups[1]: hosts per rack; ... May be uneven. Empty: one host.
  std::vector<std::vector<Rank>> groups;

  bool operator==(const Problem&) const = default;
};

std::string describe(const Problem& problem);  // "all_reduce of 8 ranks in place, groups 3+5"

// A block is what one rank contributes or receives: `count` elements of the caller. How many a rank's memory holds:
//   collective      input          output
//   all_reduce      1              1
//   all_gather      1              n
//   reduce_scatter  n              1
//   broadcast       1 (root)       1
//   reduce          1              1 (root)
//   all_to_all      n              n
//   gather          1              n (root)
//   scatter         n (root)       1
// 0 where the rank passes no such memory (the caller's pointer is not read or written there).
Rank input_blocks(const Problem& problem, Rank rank);
Rank output_blocks(const Problem& problem, Rank rank);

constexpr bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::reduce;
}
constexpr bool has_root(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::gather ||
         collective == Collective::scatter;
}

// In place, input and output of a rank overlap: input block i is output block i + shift, for the blocks both have.
// all_gather and gather: shift = rank. reduce_scatter and scatter: shift = -rank. Otherwise 0.
std::int64_t in_place_shift(const Problem& problem, Rank rank);

}  // namespace tutti
