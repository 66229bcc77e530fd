// Candidates in NCCL's table, and back.
#include "src/tuner/plugin/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tutti::test {
namespace {

using nccl_tuner::kNotAvailable;
using nccl_tuner::Table;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Candidate candidate(std::string_view algorithm, Protocol protocol, double predicted_us) {
  Candidate made;
  made.predicted_us = predicted_us;
  made.choice.algorithm = algorithm;
  made.choice.protocol = protocol;
  return made;
}

// Fastest first: two without a name in NCCL among those with one.
const std::vector<Candidate> kOurs = {candidate("two_shot", Protocol::simple, 3),
                                      candidate("ring", Protocol::simple, 5),
                                      candidate("double_binary_tree", Protocol::simple, 6),
                                      candidate("ring", Protocol::ll, 7),
                                      candidate("ring", Protocol::simple, 8),
                                      candidate("double_binary_tree", Protocol::ll128, 9),
                                      candidate("hierarchical", Protocol::simple, 10)};

TEST(NcclTable, HasCandidatesWithNcclNames) {
  const Projection projection = project(Collective::all_reduce, kOurs);
  EXPECT_TRUE(projection.any);
  Table expected;
  for (auto& row : expected) row.fill(kNotAvailable);
  expected[1][2] = 5;  // Ring/Simple: the better of two.
  expected[0][2] = 6;  // Tree/Simple
  expected[1][0] = 7;  // Ring/LL
  expected[0][1] = 9;  // Tree/LL128
  EXPECT_EQ(projection.table, expected);
  EXPECT_EQ(projection.candidate[1][2], 1);
  EXPECT_EQ(projection.candidate[0][1], 5);
  EXPECT_EQ(projection.candidate[6][2], -1);
}

TEST(NcclTable, MapsChainsAndTrees_InRootedCollectives) {
  const std::vector<Candidate> ours = {candidate("direct", Protocol::simple, 1),
                                       candidate("chain", Protocol::simple, 2),
                                       candidate("binary_tree", Protocol::ll, 3)};
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    const Projection projection = project(collective, ours);
    EXPECT_EQ(projection.table[1][2], 2);
    EXPECT_EQ(projection.table[0][0], 3);
  }
  EXPECT_FALSE(project(Collective::all_gather, ours).any);
  const std::vector<Candidate> bruck = {candidate("bruck", Protocol::simple, 4)};
  EXPECT_EQ(project(Collective::all_gather, bruck).table[6][2], 4);
}

TEST(NcclTable, NumbersCollectivesAndBytesLikeNccl) {
  EXPECT_EQ(number_of(Collective::broadcast), 0);
  EXPECT_EQ(number_of(Collective::reduce), 1);
  EXPECT_EQ(number_of(Collective::all_gather), 2);
  EXPECT_EQ(number_of(Collective::reduce_scatter), 3);
  EXPECT_EQ(number_of(Collective::all_reduce), 4);
  for (const Collective none : {Collective::all_to_all, Collective::gather, Collective::scatter})
    EXPECT_EQ(number_of(none), std::nullopt);
  PluginCall question = {.collective = Collective::all_gather, .ranks = 6, .block_bytes = 100};
  EXPECT_EQ(bytes_of(question), 600U);
  question.collective = Collective::reduce_scatter;
  EXPECT_EQ(bytes_of(question), 600U);
  question.collective = Collective::all_reduce;
  EXPECT_EQ(bytes_of(question), 100U);
}

class PluginChoiceTest : public testing::Test {
 protected:
  const Projection before_ = project(Collective::all_reduce, kOurs);
  Table table_ = before_.table;

  std::optional<std::size_t> chosen() const { return judge(before_, table_, 0).value().candidate; }
  std::string error() const { return judge(before_, table_, 0).status().message(); }
};

TEST_F(PluginChoiceTest, IsEmpty_WhenTableIsUnchanged) {
  const PluginChoice advised = judge(before_, table_, 0).value();
  EXPECT_TRUE(advised.silent());
  EXPECT_EQ(hash(advised, kOurs), 0U);
}

TEST_F(PluginChoiceTest, IsFastestOfChangedTable) {
  table_[1][0] = 0;
  EXPECT_EQ(chosen(), 3U);
  table_ = before_.table;
  table_[1][2] = 1e6;  // Slower than all others, so it must not be chosen.
  EXPECT_EQ(chosen(), 2U);
  table_[0][2] = kNotAvailable;
  EXPECT_EQ(chosen(), 3U);
}

TEST_F(PluginChoiceTest, IsFirstCandidateAmongEquals) {
  table_[0][2] = table_[1][0] = table_[1][2] = 0;
  EXPECT_EQ(chosen(), 1U);
  table_[1][2] = 2;
  EXPECT_EQ(chosen(), 2U);
}

TEST_F(PluginChoiceTest, IgnoresMissingCandidates) {
  table_[4][2] = 0;
  EXPECT_EQ(chosen(), std::nullopt);
  EXPECT_EQ(preferred_unavailable(before_, table_), "NVLS/Simple");
  table_ = before_.table;
  EXPECT_EQ(preferred_unavailable(before_, table_), "");
}

TEST_F(PluginChoiceTest, RejectsInvalidTimes) {
  table_[1][2] = -7;
  table_[1][0] = kInfinity;
  EXPECT_EQ(chosen(), 2U);
  for (const std::size_t row : {1, 5}) {
    table_ = before_.table;
    table_[row][0] = kNan;
    EXPECT_NE(error().find("not a number"), std::string::npos) << row;
  }
  EXPECT_NE(error().find("NVLSTree/LL "), std::string::npos) << error();
  for (const float nothing : {kNotAvailable, kInfinity}) {
    for (auto& entries : table_) entries.fill(nothing);
    EXPECT_NE(error().find("exclude all candidates"), std::string::npos) << nothing;
  }
}

TEST_F(PluginChoiceTest, UsesChannels_WhenNcclHasNameForChoice) {
  EXPECT_EQ(judge(before_, table_, 4).value().channels, 0U);  // The default is two_shot.
  table_[1][2] = 0;
  EXPECT_EQ(judge(before_, table_, 4).value().channels, 4U);
  EXPECT_EQ(judge(before_, table_, -1).value().channels, 0U);
  const std::vector<Candidate> ring_first(kOurs.begin() + 1, kOurs.end());
  const Projection before = project(Collective::all_reduce, ring_first);
  const PluginChoice advised = judge(before, before.table, 4).value();
  EXPECT_EQ(advised.candidate, std::nullopt);
  EXPECT_EQ(advised.channels, 4U);
}

TEST_F(PluginChoiceTest, HashDiffers_WhenChoicesDiffer) {
  const std::vector<PluginChoice> results = {{}, {1, 0}, {2, 0}, {3, 0}, {5, 0}, {1, 4}, {1, 5}, {std::nullopt, 4}};
  for (const PluginChoice& one : results) {
    for (const PluginChoice& other : results) {
      const bool same = one.candidate == other.candidate && one.channels == other.channels;
      EXPECT_EQ(hash(one, kOurs) == hash(other, kOurs), same);
    }
  }
}

}  // namespace
}  // namespace tutti::test
