// The catalogue of algorithms; the tuner, tests and tools iterate over it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "src/plan/algorithm.h"

namespace tutti {

// Algorithms of a collective, in no particular order. At least one of them supports any number of ranks, in place or
// not.
std::span<const Algorithm* const> catalogue(Collective collective);

const Algorithm* find(Collective collective, std::string_view name);  // Null if there is none.

// Comma-separated names, sorted, for messages.
std::string names_of(Collective collective);

// True if ranks access each other's buffers (_mapped) or scratch (_staged) instead of sending messages.
constexpr bool accesses_peers(std::string_view algorithm) {
  return algorithm.ends_with("_mapped") || algorithm.ends_with("_staged");
}

// True if the algorithm supports only ranks of several hosts.
bool requires_hosts(const Algorithm& algorithm, Collective collective);

}  // namespace tutti
