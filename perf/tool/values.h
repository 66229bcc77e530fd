// The values of a checked run, one source for the host and for kernels: see pattern.h. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "perf/tool/collective.h"

#ifdef __CUDACC__
#define PERF_HOST_DEVICE __host__ __device__
#else
#define PERF_HOST_DEVICE
#endif

namespace perf {

struct Values {
  tutti_reduction reduction;
  bool is_mulsum;
  std::uint32_t ranks, salt;
  std::uint32_t active;  // Ranks that contribute to an element; the others' value is neutral.
  std::uint32_t max;     // Largest value of a rank.

  // Value of element `index` of a rank's input.
  PERF_HOST_DEVICE std::uint32_t of(std::uint32_t rank, std::size_t index) const;
  // Reduction over all ranks.
  PERF_HOST_DEVICE std::uint32_t reduced(std::size_t index) const;
};

// Expected output of a rank.
struct Output {
  Values values;
  bool is_reduced;
  std::size_t first;     // Element of the inputs with which each block begins.
  std::uint32_t source;  // Rank of block 0; block b comes from rank source + b.
  std::size_t blocks, count;

  PERF_HOST_DEVICE std::uint32_t at(std::size_t block, std::size_t i) const {
    if (is_reduced) return values.reduced(first + i);
    return values.of(source + static_cast<std::uint32_t>(block), first + i);
  }
};

// Element of up to 16 bytes: the first 8, and the others.
struct Wide {
  std::uint64_t low, high;
};

// A rank's scalar for mulsum.
PERF_HOST_DEVICE inline std::uint32_t scalar_of(std::uint32_t rank) { return rank % 2 == 0 ? 1 : 2; }

PERF_HOST_DEVICE inline std::uint32_t mix(std::uint64_t index, std::uint32_t lane, std::uint32_t salt) {
  std::uint64_t hash = index * 0x9e3779b97f4a7c15ULL + lane * 0xc2b2ae3d27d4eb4fULL + salt * 0x165667b19e3779f9ULL;
  hash = (hash ^ (hash >> 31)) * 0xd6e8feb86659fd93ULL;
  return static_cast<std::uint32_t>(hash >> 32);
}

// Scales a random word to [0, most].
PERF_HOST_DEVICE inline std::uint32_t below(std::uint32_t word, std::uint32_t max) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(word) * (max + 1ULL)) >> 32);
}

// Averages are integers: ranks 2i and 2i + 1 contribute w + d and w - d; an unpaired last rank contributes w.
PERF_HOST_DEVICE inline std::uint32_t Values::of(std::uint32_t rank, std::size_t index) const {
  const bool is_active = active == ranks || (rank + index) % ranks < active;
  switch (reduction) {
    case tutti_prod: return is_active ? 1 + (mix(index, rank, salt) & 1) : 1;
    case tutti_avg: {
      const std::uint32_t whole = below(mix(index, ranks, salt), max);
      if (rank % 2 == 0 && rank + 1 == ranks) return whole;
      const std::uint32_t difference = below(mix(index, rank / 2, salt), whole);
      return rank % 2 == 0 ? whole + difference : whole - difference;
    }
    default: return is_active ? below(mix(index, rank, salt), max) : 0;
  }
}

PERF_HOST_DEVICE inline std::uint32_t Values::reduced(std::size_t index) const {
  if (reduction == tutti_avg) return below(mix(index, ranks, salt), max);
  std::uint32_t result = of(0, index);  // Rank 0's scalar is 1.
  for (std::uint32_t rank = 1; rank < ranks; ++rank) {
    const std::uint32_t next = of(rank, index) * (is_mulsum ? scalar_of(rank) : 1);
    switch (reduction) {
      case tutti_prod: result *= next; break;
      case tutti_min: result = next < result ? next : result; break;
      case tutti_max: result = next > result ? next : result; break;
      case tutti_band: result &= next; break;
      case tutti_bor: result |= next; break;
      case tutti_bxor: result ^= next; break;
      default: result += next; break;
    }
  }
  return result;
}

}  // namespace perf
