#include "src/plan/layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace tutti::test {
namespace {

constexpr std::uint64_t kCounts[] = {
    0, 1, 2, 7, 63, 64, 65, 1000, 999983, std::uint64_t{1} << 40, (std::uint64_t{1} << 40) + 12345};

TEST(Layout, CutsUnitsWithoutGaps) {
  for (const std::uint64_t count : kCounts) {
    for (const std::uint32_t units : {1U, 2U, 3U, 7U, 64U, 1000U}) {
      const Blocks blocks{.count = count};
      std::uint64_t next = 0;
      for (std::uint32_t unit = 0; unit < 2 * units; ++unit) {
        const Extent extent = run_extent(blocks, {.units = units}, unit, 1);
        ASSERT_EQ(extent.offset, next);
        ASSERT_LE(extent.count, count / units + 1);  // Equal but for one element.
        ASSERT_GE(extent.count, count / units);
        next += extent.count;
      }
      EXPECT_EQ(next, 2 * count);
    }
  }
}

TEST(Layout, CoarseUnitsAreUnionsOfFinerOnes) {
  for (const std::uint64_t count : kCounts) {
    for (const std::uint32_t coarse : {1U, 2U, 5U, 12U}) {
      for (const std::uint32_t times : {2U, 3U, 16U}) {
        for (std::uint32_t unit = 0; unit < 2 * coarse; ++unit) {
          const Blocks blocks{.count = count};
          const Extent whole = run_extent(blocks, {.units = coarse}, unit, 1);
          const Extent fine = run_extent(blocks, {.units = coarse * times}, unit * times, times);
          ASSERT_EQ(fine.offset, whole.offset) << count << " in " << coarse << " and " << coarse * times;
          ASSERT_EQ(fine.count, whole.count);
        }
      }
    }
  }
}

// floor(unit * count / units), even if the product exceeds 64 bits.
TEST(Layout, DoesNotOverflow) {
  const std::uint64_t count = (std::uint64_t{1} << 40) + 12345;
  const std::uint32_t units = 1U << 20;
  for (const std::uint64_t unit : {std::uint64_t{1}, std::uint64_t{524289}, std::uint64_t{units}}) {
    const auto exact = static_cast<std::uint64_t>(static_cast<unsigned __int128>(unit) * count / units);
    EXPECT_EQ(unit_begin(count, units, unit), exact);
  }
  EXPECT_EQ(unit_begin(std::uint64_t{1} << 62, 3, 2), (std::uint64_t{1} << 63) / 3);
}

TEST(Layout, PartsCoverUnitOnce) {
  for (const std::uint64_t count : kCounts) {
    for (const std::uint32_t parts : {1U, 2U, 3U, 17U}) {
      for (const std::uint16_t granule : {1, 16, 64}) {
        const Extent whole{.offset = 1000, .count = count};
        const Cut cut{.units = 1, .parts = parts, .granule = granule};
        std::uint64_t next = whole.offset;
        for (std::uint32_t part = 0; part < parts; ++part) {
          const Extent extent = part_of(whole, cut, part);
          if (extent.count == 0) continue;
          ASSERT_EQ(extent.offset, next);
          ASSERT_TRUE(parts == 1 || (extent.offset - whole.offset) % granule == 0);
          next += extent.count;
        }
        EXPECT_EQ(next, whole.offset + count) << parts << " parts of " << count;
      }
    }
  }
}

// Units are whole groups except for the last of a block, wherever the block begins. The same holds for parts of units.
TEST(Layout, KeepsGroupsTogether) {
  constexpr std::uint16_t kGroup = 8;
  for (const std::uint64_t count : {1, 7, 8, 9, 64, 1000, 1003}) {
    for (const std::uint32_t units : {1U, 2U, 3U, 16U}) {
      const Blocks blocks{.count = count};
      const Cut cut{.units = units, .parts = 3, .granule = kGroup, .group = kGroup};
      std::uint64_t next = 0;
      for (std::uint32_t unit = 0; unit < 3 * units; ++unit) {
        const Extent whole = run_extent(blocks, cut, unit, 1);
        ASSERT_EQ(whole.offset, next) << count << " in " << units;
        next += whole.count;
        ASSERT_TRUE(next % count == 0 || (next % count) % kGroup == 0) << count << " in " << units;
        std::uint64_t parted = 0;
        for (std::uint32_t part = 0; part < cut.parts; ++part) {
          const Extent extent = part_of(whole, cut, part);
          parted += extent.count;
          if (extent.count > 0) {
            ASSERT_EQ((extent.offset - whole.offset) % kGroup, 0U);
          }
        }
        ASSERT_EQ(parted, whole.count);
      }
      EXPECT_EQ(next, 3 * count);
    }
  }
}

// A run may span blocks only if no block ends within a group and nothing is cut into parts.
TEST(Layout, JoinsUnits_OnlyAtGroupBoundaries) {
  EXPECT_TRUE(adjoin({.count = 1003}, {.units = 2}));
  EXPECT_TRUE(adjoin({.count = 1000}, {.units = 2, .granule = 8, .group = 8}));
  EXPECT_FALSE(adjoin({.count = 1003}, {.units = 2, .granule = 8, .group = 8}));
  EXPECT_FALSE(adjoin({.count = 1000}, {.units = 2, .parts = 2}));
}

TEST(Layout, PlacesUnequalBlocks_AtDisplacements) {
  const std::vector<std::uint64_t> counts = {5, 0, 9};
  const std::vector<std::uint64_t> displacements = {100, 7, 40};
  const Blocks blocks{.count = 0, .counts = counts.data(), .displacements = displacements.data()};
  EXPECT_EQ(run_extent(blocks, {.units = 2}, 0, 2).offset, 100U);
  EXPECT_EQ(run_extent(blocks, {.units = 2}, 0, 2).count, 5U);
  EXPECT_EQ(run_extent(blocks, {.units = 2}, 1, 1).offset, 102U);
  EXPECT_EQ(run_extent(blocks, {.units = 2}, 3, 1).count, 0U);
  EXPECT_EQ(run_extent(blocks, {.units = 2}, 5, 1).offset, 44U);
  EXPECT_EQ(run_extent(blocks, {.units = 2}, 5, 1).count, 5U);
}

}  // namespace
}  // namespace tutti::test
