#include "src/base/nearest_name.h"

#include <gtest/gtest.h>

#include <array>

namespace tutti::test {
namespace {

constexpr std::array<std::string_view, 4> kKnown = {"all_reduce", "all_gather", "ring", "ranks-per-host"};

TEST(NearestName, IgnoresCaseAndSeparators) {
  EXPECT_EQ(nearest_name("allreduce", kKnown), "all_reduce");
  EXPECT_EQ(nearest_name("AllReduce", kKnown), "all_reduce");
  EXPECT_EQ(nearest_name("ranks_per_host", kKnown), "ranks-per-host");
}

TEST(NearestName, AcceptsOneEditInAShortName) {
  EXPECT_EQ(nearest_name("rign", kKnown), "ring");  // Letters swapped.
  EXPECT_EQ(nearest_name("rong", kKnown), "ring");
  EXPECT_EQ(nearest_name("rings", kKnown), "ring");
}

TEST(NearestName, AcceptsAnAbbreviationOfThreeLetters) {
  EXPECT_EQ(nearest_name("rank", kKnown), "ranks-per-host");
  EXPECT_EQ(nearest_name("ra", kKnown), "");
}

TEST(NearestName, PrefersShortestOfSeveralAbbreviatedNames) {
  constexpr std::array<std::string_view, 3> kTune = {"TUNER_PLUGIN", "TUNE", "TUNE_FILE"};
  EXPECT_EQ(nearest_name("tune", kTune), "TUNE");
  EXPECT_EQ(nearest_name("TUN", kTune), "TUNE");
  EXPECT_EQ(nearest_name("tuner", kTune), "TUNER_PLUGIN");
}

TEST(NearestName, IsEmpty_WhenNoNameIsClose) {
  for (const char* written : {"", "x", "foo", "rung!", "reduce_all"})
    EXPECT_EQ(nearest_name(written, kKnown), "") << written;
}

TEST(NearestName, ChoosesTheClosestOfSeveral) { EXPECT_EQ(nearest_name("all_gater", kKnown), "all_gather"); }

TEST(Suggestion, ListsAllNames_WhenNoneIsClose) {
  EXPECT_EQ(suggestion("allreduce", kKnown), "did you mean all_reduce?");
  EXPECT_EQ(suggestion("sum", kKnown), "must be one of all_reduce, all_gather, ring, ranks-per-host");
}

}  // namespace
}  // namespace tutti::test
