// All algorithms that there are: the tuner chooses among them, tests and tools go through them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "src/plan/algorithm.h"

namespace tutti {

// In no order of merit. For each collective at least one supports any number of ranks, in place or not.
std::span<const Algorithm* const> catalogue(Collective collective);

const Algorithm* find(Collective collective, std::string_view name);  // nullptr where there is none.

// "bruck, direct, ...": for people, sorted.
std::string names_of(Collective collective);

// Whether an algorithm of the collective is for ranks of several hosts alone.
bool wants_hosts(const Algorithm& algorithm, Collective collective);

}  // namespace tutti
