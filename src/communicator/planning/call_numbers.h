// Keys and element numbers for random numbers (stochastic rounding) and error feedback. Equal on host memory and on
// devices. The rules are in docs/reference/compression-formats.md.
#pragma once

#include <cstdint>

#include "src/communicator/call/call.h"

namespace tutti {

struct CallNumbers {
  std::uint64_t key = 0;        // Key of the random numbers for messages.
  std::uint64_t input_key = 0;  // Key of the random numbers for an input that has a residual.
  // Elements of the longer of input and output. Random numbers are indexed by these elements.
  std::uint64_t elements = 1;
  std::uint64_t first_input = 0, first_output = 0;
};

// `sequence` is the number of the collective in its communicator. Each rank and each call has its own random numbers,
// so errors are independent, and reproducible between runs.
CallNumbers numbers_of(const Call& call, Rank rank, Rank ranks, std::uint64_t sequence, std::uint64_t seed);

}  // namespace tutti
