// Arithmetic on ranks and block ranges shared by several algorithms.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "src/plan/step.h"

namespace tutti {

constexpr std::uint32_t log2_rounded_up(Rank n) { return static_cast<std::uint32_t>(std::bit_width(n - 1)); }

struct Range {
  Rank first = 0, count = 0;
};

// Blocks first, first + 1, ... modulo n, as at most two contiguous ranges; the second may be empty.
struct Wrapped {
  Range runs[2];
};
constexpr Wrapped wrapped(Rank first, Rank count, Rank n) {
  first %= n;
  const Rank before_end = std::min(count, n - first);
  return {{{first, before_end}, {0, count - before_end}}};
}

// One flag per peer, in ring order from the next rank on.
inline std::vector<Operand> flags_of_peers(Rank self, Rank n) {
  std::vector<Operand> flags;
  for (Rank i = 1; i < n; ++i) flags.push_back(flag((self + i) % n));
  return flags;
}

}  // namespace tutti
