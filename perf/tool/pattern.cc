#include "perf/tool/pattern.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace perf {
namespace {

constexpr std::uint32_t kDoublings = 6;  // Every type represents 2^6 exactly; a product is a power of two.

// Reductions of bool as bitwise operations on 0 and 1.
tutti_reduction logical(tutti_reduction reduction) {
  switch (reduction) {
    case tutti_sum:
    case tutti_max: return tutti_bor;
    case tutti_prod:
    case tutti_min: return tutti_band;
    default: return reduction;
  }
}

Values values_for(const Element& element, const Operation& operation, std::uint32_t ranks) {
  const std::uint32_t budget = operation.is_mulsum ? element.exact / 2 : element.exact;
  Values values = {};
  values.reduction = operation.reduction;
  values.is_mulsum = operation.is_mulsum;
  values.ranks = values.active = ranks;
  if (element.type == tutti_bool) values.reduction = logical(operation.reduction);
  switch (values.reduction) {
    case tutti_prod: values.active = std::min(ranks, kDoublings), values.max = 2; break;
    case tutti_min:
    case tutti_max: values.max = element.exact; break;
    case tutti_avg: values.max = budget / ranks; break;
    case tutti_band:
    case tutti_bor:
    case tutti_bxor: values.max = std::bit_floor(element.exact + 1) - 1; break;
    default: values.active = std::min(ranks, budget), values.max = budget / values.active; break;
  }
  return values;
}

}  // namespace

Pattern::Pattern(const Element& element, const Operation& operation, int ranks, std::uint32_t salt)
    : element_(element), values_(values_for(element, operation, static_cast<std::uint32_t>(ranks))) {
  values_.salt = salt;
  for (std::uint32_t i = 0; i <= std::max(element.exact, 1U << kDoublings); ++i) bits_.push_back(bits_of(element, i));
}

void Pattern::fill(void* memory, int rank, std::size_t first, std::size_t count) const {
  char* bytes = static_cast<char*>(memory);
  for (std::size_t i = 0; i < count; ++i, bytes += element_.size) {
    const Wide wide = {bits_[values_.of(static_cast<std::uint32_t>(rank), first + i)], 0};
    std::memcpy(bytes, &wide, element_.size);  // Little-endian.
  }
}

Output Pattern::output(const Collective& collective, const Position& at, std::size_t count) const {
  Output output = {};
  output.values = values_;
  output.is_reduced = collective.reduces();
  output.first = collective.own_block ? static_cast<std::size_t>(at.rank) * count : 0;
  if (collective.flow == Flow::from_root) output.source = static_cast<std::uint32_t>(at.root);
  if (collective.flow == Flow::from_previous)
    output.source = static_cast<std::uint32_t>((at.rank + at.ranks - 1) % at.ranks);
  output.blocks = collective.recv_blocks(at);
  output.count = count;
  return output;
}

std::uint64_t Pattern::wrong(const void* memory, const Output& output) const {
  const char* bytes = static_cast<const char*>(memory);
  std::uint64_t mismatches = 0;
  for (std::size_t block = 0; block < output.blocks; ++block) {
    for (std::size_t i = 0; i < output.count; ++i, bytes += element_.size) {
      const Wide wide = {bits_[output.at(block, i)], 0};
      mismatches += std::memcmp(bytes, &wide, element_.size) != 0;
    }
  }
  return mismatches;
}

}  // namespace perf
