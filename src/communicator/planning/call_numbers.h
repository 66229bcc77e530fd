// How the elements of a call are counted where rounding goes by random numbers or is fed back, and under which keys:
// the same on host memory and on devices. docs/reference/compression-formats.md has the rules.
#pragma once

#include <cstdint>

#include "src/communicator/call.h"

namespace tutti {

struct CallNumbers {
  std::uint64_t key = 0;        // Key of a message's random numbers.
  std::uint64_t input_key = 0;  // and of those of an input that goes with a residual.
  std::uint64_t elements = 1;   // Elements of the longer of input and output, by which random numbers are counted.
  std::uint64_t first_input = 0, first_output = 0;
};

// `sequence`: of the communicator's collectives. Ranks draw numbers of their own, and each call others: so errors are
// independent, and the same in every run.
CallNumbers numbers_of(const Call& call, Rank rank, Rank ranks, std::uint64_t sequence, std::uint64_t seed);

}  // namespace tutti
