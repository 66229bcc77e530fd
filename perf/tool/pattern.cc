#include "perf/tool/pattern.h"

#include <algorithm>
#include <cstring>

namespace perf {
namespace {

std::uint32_t mix(std::uint64_t index, std::uint32_t lane, std::uint32_t salt) {
  std::uint64_t hash = index * 0x9e3779b97f4a7c15ULL + lane * 0xc2b2ae3d27d4eb4fULL + salt * 0x165667b19e3779f9ULL;
  hash = (hash ^ (hash >> 31)) * 0xd6e8feb86659fd93ULL;
  return static_cast<std::uint32_t>(hash >> 32);
}

// Scales a random word to [0, most].
std::uint32_t below(std::uint32_t word, std::uint32_t most) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(word) * (most + 1ULL)) >> 32);
}

constexpr std::uint32_t kDoublings = 6;  // Every type holds 2^6; a product is a power of two.

}  // namespace

Pattern::Pattern(const Element& element, const Operation& operation, int ranks, std::uint32_t salt)
    : element_(element), operation_(operation), ranks_(static_cast<std::uint32_t>(ranks)), salt_(salt) {
  const std::uint32_t budget = operation.is_mulsum ? element.exact / 2 : element.exact;
  switch (operation.reduction) {
    case tutti_prod: active_ = std::min(ranks_, kDoublings), most_ = 2; break;
    case tutti_min:
    case tutti_max: active_ = ranks_, most_ = element.exact; break;
    case tutti_avg: active_ = ranks_, most_ = budget / ranks_; break;
    default: active_ = std::min(ranks_, budget), most_ = budget / active_; break;
  }
  for (std::uint32_t i = 0; i <= std::max(element.exact, 1U << kDoublings); ++i) bits_.push_back(bits_of(element, i));
}

// An average is made whole by ranks in pairs: one gives w + d, the other w - d, and one left over w.
std::uint32_t Pattern::value(int rank_number, std::size_t index) const {
  const auto rank = static_cast<std::uint32_t>(rank_number);
  const bool is_active = active_ == ranks_ || (rank + index) % ranks_ < active_;
  switch (operation_.reduction) {
    case tutti_prod: return is_active ? 1 + (mix(index, rank, salt_) & 1) : 1;
    case tutti_avg: {
      const std::uint32_t whole = below(mix(index, ranks_, salt_), most_);
      if (rank % 2 == 0 && rank + 1 == ranks_) return whole;
      const std::uint32_t difference = below(mix(index, rank / 2, salt_), whole);
      return rank % 2 == 0 ? whole + difference : whole - difference;
    }
    default: return is_active ? below(mix(index, rank, salt_), most_) : 0;
  }
}

std::uint32_t Pattern::reduced(std::size_t index) const {
  if (operation_.reduction == tutti_avg) return below(mix(index, ranks_, salt_), most_);
  std::uint32_t result = value(0, index);  // Rank 0's scalar is 1.
  for (std::uint32_t r = 1; r < ranks_; ++r) {
    const auto rank = static_cast<int>(r);
    const std::uint32_t next = value(rank, index) * (operation_.is_mulsum ? scalar(rank) : 1);
    switch (operation_.reduction) {
      case tutti_prod: result *= next; break;
      case tutti_min: result = std::min(result, next); break;
      case tutti_max: result = std::max(result, next); break;
      default: result += next; break;
    }
  }
  return result;
}

void Pattern::fill(void* memory, int rank, std::size_t first, std::size_t count) const {
  char* bytes = static_cast<char*>(memory);
  for (std::size_t i = 0; i < count; ++i, bytes += element_.size) {
    std::memcpy(bytes, &bits_[value(rank, first + i)], element_.size);  // Little-endian.
  }
}

std::uint64_t Pattern::wrong(const void* memory, const Collective& collective, const Position& at,
                             std::size_t count) const {
  const char* bytes = static_cast<const char*>(memory);
  const std::size_t first = collective.own_block ? static_cast<std::size_t>(at.rank) * count : 0;
  std::uint64_t mismatches = 0;
  for (std::size_t block = 0; block < collective.recv_blocks(at); ++block) {
    int source = static_cast<int>(block);
    if (collective.flow == Flow::from_root) source = at.root;
    if (collective.flow == Flow::from_previous) source = (at.rank + at.ranks - 1) % at.ranks;
    for (std::size_t i = 0; i < count; ++i, bytes += element_.size) {
      const std::uint32_t expected = collective.reduces() ? reduced(first + i) : value(source, first + i);
      mismatches += std::memcmp(bytes, &bits_[expected], element_.size) != 0;
    }
  }
  return mismatches;
}

}  // namespace perf
