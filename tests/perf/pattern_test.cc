#include "perf/tool/pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace perf {
namespace {

const Element& element(const std::string& name) {
  for (const Element& each : all_elements()) {
    if (name == each.name) return each;
  }
  throw std::invalid_argument(name);
}

const Operation& sum() { return all_operations().front(); }

// Returns the expected output of rank `at.rank` in an all-to-all, made by copying.
std::vector<char> exchanged(const Pattern& pattern, const Element& type, const Position& at, std::size_t count) {
  const std::size_t block = count * type.size;
  std::vector<char> recv(block * static_cast<std::size_t>(at.ranks));
  for (int from = 0; from < at.ranks; ++from) {
    pattern.fill(recv.data() + static_cast<std::size_t>(from) * block, from, static_cast<std::size_t>(at.rank) * count,
                 count);
  }
  return recv;
}

std::uint64_t wrong_of(const Pattern& pattern, const void* memory, const char* collective, const Position& at,
                       std::size_t count) {
  return pattern.wrong(memory, pattern.output(*find_collective(collective), at, count));
}

TEST(Pattern, AcceptsCorrectOutputs) {
  const Position at = {.rank = 1, .ranks = 3, .root = 0};
  for (const Element& type : all_elements()) {
    const Pattern pattern(type, sum(), at.ranks, 7);
    EXPECT_EQ(wrong_of(pattern, exchanged(pattern, type, at, 100).data(), "alltoall", at, 100), 0U) << type.name;
  }
}

TEST(Pattern, RejectsUnwrittenOutputs) {
  const Position at = {.rank = 1, .ranks = 3, .root = 1};
  const std::size_t count = 100;
  const std::vector<char> poison(3 * count * sizeof(Wide), static_cast<char>(kPoison));
  for (const char* name : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "gather",
                           "scatter", "sendrecv"}) {
    const Collective& collective = *find_collective(name);
    for (const Element& type : all_elements()) {
      for (const Operation& operation : all_operations()) {
        const Pattern pattern(type, operation, at.ranks, 1);
        EXPECT_EQ(wrong_of(pattern, poison.data(), name, at, count), collective.recv_blocks(at) * count)
            << name << " " << type.name << " " << operation.name;
      }
    }
  }
}

TEST(Pattern, RejectsBlocksInWrongPlace) {
  const Position at = {.rank = 0, .ranks = 4, .root = 0};
  for (const Element& type : all_elements()) {
    const Pattern pattern(type, sum(), at.ranks, 3);
    std::vector<char> recv = exchanged(pattern, type, at, 64);
    const std::size_t block = 64 * type.size;
    std::swap_ranges(recv.begin(), recv.begin() + static_cast<std::ptrdiff_t>(block),
                     recv.begin() + static_cast<std::ptrdiff_t>(block));
    EXPECT_GT(wrong_of(pattern, recv.data(), "alltoall", at, 64), type.exact > 1 ? 32U : 16U) << type.name;
  }
}

TEST(Pattern, RejectsOutputsOfEarlierRun) {
  const Position at = {.rank = 2, .ranks = 4, .root = 0};
  for (const Element& type : all_elements()) {
    const Pattern before(type, sum(), at.ranks, 1), now(type, sum(), at.ranks, 2);
    EXPECT_GT(wrong_of(now, exchanged(before, type, at, 64).data(), "alltoall", at, 64), type.exact > 1 ? 32U : 16U)
        << type.name;
  }
}

TEST(Pattern, RejectsOneWrongElement) {
  const Position at = {.rank = 2, .ranks = 4, .root = 0};
  const Element& type = element("float");
  const Pattern pattern(type, sum(), at.ranks, 1);
  std::vector<char> recv = exchanged(pattern, type, at, 64);
  recv[4 * 200] = static_cast<char>(recv[4 * 200] ^ 1);
  EXPECT_EQ(wrong_of(pattern, recv.data(), "alltoall", at, 64), 1U);
}

TEST(Elements, HaveBitsOfTheirNumbers) {
  const float f = 37;
  const double d = 37;
  std::uint32_t f_bits = 0;
  std::uint64_t d_bits = 0;
  std::memcpy(&f_bits, &f, sizeof f);
  std::memcpy(&d_bits, &d, sizeof d);
  EXPECT_EQ(bits_of(element("float"), 37), f_bits);
  EXPECT_EQ(bits_of(element("double"), 37), d_bits);
  EXPECT_EQ(bits_of(element("bfloat16"), 37), f_bits >> 16);
  EXPECT_EQ(bits_of(element("half"), 2047), 0x67ffU);
  EXPECT_EQ(bits_of(element("f8e4m3"), 13), 0x55U);
  EXPECT_EQ(bits_of(element("f8e5m2"), 64), 0x54U);
  EXPECT_EQ(bits_of(element("uint8"), 127), 127U);
  EXPECT_EQ(bits_of(element("complex64"), 37), f_bits);
  EXPECT_EQ(bits_of(element("complex128"), 37), d_bits);
}

TEST(Collective, HasBusFactorOfNcclTests) {
  EXPECT_DOUBLE_EQ(find_collective("all_reduce")->bus_factor(4), 1.5);
  EXPECT_DOUBLE_EQ(find_collective("all_gather")->bus_factor(4), 0.75);
  EXPECT_DOUBLE_EQ(find_collective("reduce_scatter")->bus_factor(4), 0.75);
  EXPECT_DOUBLE_EQ(find_collective("scatter")->bus_factor(4), 0.75);
  EXPECT_DOUBLE_EQ(find_collective("reduce")->bus_factor(4), 1);
  EXPECT_DOUBLE_EQ(find_collective("broadcast")->bus_factor(4), 1);
}

}  // namespace
}  // namespace perf
