// Positions of the units of a plan in the caller's memory, computed at launch. No other file of the module uses element
// counts.
#pragma once

#include <cstdint>

#include "src/base/platform.h"

namespace tutti {

// A range of elements.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
};

// The blocks of one memory: equal and contiguous, or with individual counts and displacements (all_to_all_v).
struct Blocks {
  std::uint64_t count = 0;                       // Elements of every block if `counts` is null.
  const std::uint64_t* counts = nullptr;         // Elements of block b.
  const std::uint64_t* displacements = nullptr;  // First element of block b.
};

// Partition of a block into units, and of a unit into parts (one per channel of each chunk). Fixed-width plain data.
struct Cut {
  std::uint32_t units = 1;    // Per block.
  std::uint32_t parts = 1;    // Per unit: channels * chunks.
  std::uint16_t granule = 1;  // Elements; parts begin at multiples of it within their unit (a cache line).
  // Elements that a message encodes together; a power of two that divides `granule`. Units begin at multiples of it
  // within their block, so only the last group of a block may be shorter.
  std::uint16_t group = 1;
};

// Returns the number of groups of `count` elements. The last group may be partial.
TUTTI_HOST_DEVICE inline std::uint64_t groups_of(std::uint64_t count, const Cut& cut) {
  return (count + cut.group - 1) / cut.group;
}

// Returns floor(unit * count / units). Does not overflow, and divides once if `units` divides `count`.
TUTTI_HOST_DEVICE inline std::uint64_t unit_begin(std::uint64_t count, std::uint32_t units, std::uint64_t unit) {
  if (units == 1) return unit * count;
  const std::uint64_t whole = count / units;
  const std::uint64_t rest = count - whole * units;
  return unit * whole + (rest == 0 ? 0 : unit * rest / units);
}

// Returns the first element of a unit, numbered over all blocks. Blocks must be equal, and units whole groups.
TUTTI_HOST_DEVICE inline std::uint64_t grouped_begin(std::uint64_t count, const Cut& cut, std::uint64_t unit) {
  const std::uint64_t block = unit / cut.units;
  const std::uint64_t begin = unit_begin(groups_of(count, cut), cut.units, unit - block * cut.units) * cut.group;
  return block * count + (begin < count ? begin : count);
}

// Returns the extent of units [first, first + run), which are adjacent in memory. Unequal blocks: within one block
// only.
TUTTI_HOST_DEVICE inline Extent run_extent(const Blocks& blocks, const Cut& cut, std::uint32_t first,
                                           std::uint32_t run) {
  const std::uint32_t units = cut.units;
  if (cut.group > 1) {
    const std::uint64_t begin = grouped_begin(blocks.count, cut, first);
    return {begin, grouped_begin(blocks.count, cut, std::uint64_t{first} + run) - begin};
  }
  if (blocks.counts == nullptr) {
    const std::uint64_t begin = unit_begin(blocks.count, units, first);
    return {begin, unit_begin(blocks.count, units, std::uint64_t{first} + run) - begin};
  }
  const std::uint32_t block = first / units;
  const std::uint32_t unit = first % units;
  const std::uint64_t begin = unit_begin(blocks.counts[block], units, unit);
  return {blocks.displacements[block] + begin,
          unit_begin(blocks.counts[block], units, std::uint64_t{unit} + run) - begin};
}

// Returns the elements of each part of an extent of `count`. The last parts may be shorter or empty.
TUTTI_HOST_DEVICE inline std::uint64_t part_size(std::uint64_t count, const Cut& cut) {
  if (cut.parts == 1) return count;
  const std::uint64_t granules = (count + cut.granule - 1) / cut.granule;
  return (granules + cut.parts - 1) / cut.parts * cut.granule;
}

// Returns the elements of part `part` of an extent of `count`, cut into parts of `size`.
TUTTI_HOST_DEVICE inline std::uint64_t part_count(std::uint64_t count, std::uint64_t size, std::uint32_t part) {
  const std::uint64_t begin = size * part;
  if (begin >= count) return 0;
  return count - begin < size ? count - begin : size;
}

// Returns whether consecutive units of one memory form one extent with the same parts and groups as the units have
// alone.
TUTTI_HOST_DEVICE inline bool adjoin(const Blocks& blocks, const Cut& cut) {
  return cut.parts == 1 && blocks.counts == nullptr && (blocks.count & (cut.group - 1U)) == 0;
}

// Returns part `part` of `cut.parts` of an extent. The parts cover the extent without gaps.
TUTTI_HOST_DEVICE inline Extent part_of(const Extent& whole, const Cut& cut, std::uint32_t part) {
  if (cut.parts == 1) return whole;
  const std::uint64_t size = part_size(whole.count, cut);
  const std::uint64_t begin = size * part;
  return {whole.offset + (begin < whole.count ? begin : whole.count), part_count(whole.count, size, part)};
}

}  // namespace tutti
