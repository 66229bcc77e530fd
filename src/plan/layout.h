// Where the units of a plan lie in the caller's memory: the only place that knows counts. Made at launch.
#pragma once

#include <cstdint>

#include "src/base/platform.h"

namespace tutti {

// A run of elements.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
};

// The blocks of one memory: equal and back to back, or with counts and displacements of their own (all_to_all_v).
struct Blocks {
  std::uint64_t count = 0;                       // Elements of every block where `counts` is null.
  const std::uint64_t* counts = nullptr;         // Elements of block b.
  const std::uint64_t* displacements = nullptr;  // First element of block b.
};

// How a block is cut into units, and a unit into parts (one for each channel of each chunk). Fixed-width plain data.
struct Cut {
  std::uint32_t units = 1;    // Per block.
  std::uint32_t parts = 1;    // Per unit: channels * chunks.
  std::uint16_t granule = 1;  // Elements; parts begin at multiples of it within their unit (a cache line).
  // Elements that stay together, since messages carry them encoded together; a power of two, and divides the granule.
  // Units begin at multiples of it within their block, so that only a block's last group may be shorter.
  std::uint16_t group = 1;
};

// Of so many elements, all but the last of whose groups are whole.
TUTTI_HOST_DEVICE inline std::uint64_t groups_of(std::uint64_t count, const Cut& cut) {
  return (count + cut.group - 1) / cut.group;
}

// floor(unit * count / units), without overflow and, where `units` divides `count`, without a division.
TUTTI_HOST_DEVICE inline std::uint64_t unit_begin(std::uint64_t count, std::uint32_t units, std::uint64_t unit) {
  if (units == 1) return unit * count;
  const std::uint64_t whole = count / units;
  const std::uint64_t rest = count - whole * units;
  return unit * whole + (rest == 0 ? 0 : unit * rest / units);
}

// The first element of a unit, counted over all blocks, where these are equal and units are whole groups.
TUTTI_HOST_DEVICE inline std::uint64_t grouped_begin(std::uint64_t count, const Cut& cut, std::uint64_t unit) {
  const std::uint64_t block = unit / cut.units;
  const std::uint64_t begin = unit_begin(groups_of(count, cut), cut.units, unit - block * cut.units) * cut.group;
  return block * count + (begin < count ? begin : count);
}

// Units [first, first + run), adjacent in memory. With unequal blocks, within one block.
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

// The elements of all parts of an extent of `count` but the last ones, which may be shorter or empty.
TUTTI_HOST_DEVICE inline std::uint64_t part_size(std::uint64_t count, const Cut& cut) {
  if (cut.parts == 1) return count;
  const std::uint64_t granules = (count + cut.granule - 1) / cut.granule;
  return (granules + cut.parts - 1) / cut.parts * cut.granule;
}

// How many elements of `count` part `part` of the given size has.
TUTTI_HOST_DEVICE inline std::uint64_t part_count(std::uint64_t count, std::uint64_t size, std::uint32_t part) {
  const std::uint64_t begin = size * part;
  if (begin >= count) return 0;
  return count - begin < size ? count - begin : size;
}

// Whether units of one memory that follow each other are one extent, of which all parts and groups are where those of
// each unit alone would be.
TUTTI_HOST_DEVICE inline bool adjoin(const Blocks& blocks, const Cut& cut) {
  return cut.parts == 1 && blocks.counts == nullptr && (blocks.count & (cut.group - 1U)) == 0;
}

// Part `part` of `cut.parts` of an extent. The parts cover it without gaps.
TUTTI_HOST_DEVICE inline Extent part_of(const Extent& whole, const Cut& cut, std::uint32_t part) {
  if (cut.parts == 1) return whole;
  const std::uint64_t size = part_size(whole.count, cut);
  const std::uint64_t begin = size * part;
  return {whole.offset + (begin < whole.count ? begin : whole.count), part_count(whole.count, size, part)};
}

}  // namespace tutti
