// The shape of a collective call, and the blocks of its buffers. Independent of bytes, type and operation.
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
  Rank root = 0;          // For broadcast, reduce, gather and scatter.
  bool in_place = false;  // Follows NCCL's conventions; see in_place_shift().
  // groups[0]: ranks per host; groups[1]: hosts per rack; and so on. Groups may be uneven. Empty: one host.
  std::vector<std::vector<Rank>> groups;

  bool operator==(const Problem&) const = default;
};

std::string describe(const Problem& problem);  // For example, "all_reduce of 8 ranks in place, groups 3+5".

// A block is the `count` elements that one rank contributes or receives. Blocks per buffer of a rank:
//   collective      input          output
//   all_reduce      1              1
//   all_gather      1              n
//   reduce_scatter  n              1
//   broadcast       1 (root)       1
//   reduce          1              1 (root)
//   all_to_all      n              n
//   gather          1              n (root)
//   scatter         n (root)       1
// Returns 0 if the rank does not use this buffer: its pointer is neither read nor written.
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

// Returns the shift with which input and output overlap in place: input block i is output block i + shift, for the
// blocks that both have. all_gather and gather: rank. reduce_scatter and scatter: -rank. Other collectives: 0.
std::int64_t in_place_shift(const Problem& problem, Rank rank);

}  // namespace tutti
