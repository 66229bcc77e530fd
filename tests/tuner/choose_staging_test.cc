// Choices of the staging ring of one host.
#include <gtest/gtest.h>

#include "src/plan/verify.h"
#include "src/tuner/candidates.h"
#include "tests/tuner/gpu_query.h"

namespace tutti::test {
namespace {

TEST(ChooseForGpus, ChoosesStaging_ForMediumSums) {
  Query query = query_on(Collective::all_reduce, 1 << 20);
  EXPECT_EQ(chosen(query), "two_shot") << "there is no ring";
  query.ring = {.channels = 16, .positions = 4};
  const Choice choice = choose(query).value();
  EXPECT_EQ(choice.algorithm, "two_shot_staged");
  EXPECT_EQ(choice.channels, 16U);
  EXPECT_EQ(choice.loop.ring, 4U);
  EXPECT_EQ(choice.loop.order, StageOrder::earliest_first);
  query.on_nvlinks = true;
  for (const auto& [bytes, algorithm] : {std::pair(512U << 10, "two_shot"),
                                         {640U << 10, "two_shot_staged"},
                                         {2U << 20, "two_shot_staged"},
                                         {4U << 20, "two_shot"}}) {
    query.block_bytes = bytes;
    for (const Rank ranks : {2U, 8U}) {
      query.problem.ranks = ranks;
      EXPECT_EQ(chosen(query), algorithm) << bytes << " " << ranks;
    }
  }
  query.block_bytes = 64 << 20;
  query.lane_channels = 12;
  EXPECT_EQ(chosen(query), "two_shot_staged") << "there are few lanes";
  query.mapped = true;
  EXPECT_EQ(chosen(query), "two_shot_mapped");
  query.mapped = false;
  query.max_channels = 12;
  EXPECT_EQ(chosen(query), "two_shot") << "the ring may not use more channels";
  query.max_channels = 0;
  query.lane_channels = 13;
  EXPECT_EQ(chosen(query), "two_shot");
  query.block_bytes = 256 << 10;
  query.lane_channels = 1;
  EXPECT_EQ(chosen(query), "two_shot_staged") << "messages of LL do not fit in slots";
  query.lane_channels = 24;
  query.block_bytes = 1 << 20;
  query.mapped = true;
  EXPECT_EQ(chosen(query), "two_shot_staged");
  query.mapped = false;
  query.protocol = "LL";
  EXPECT_EQ(chosen(query), "two_shot") << "staging has no messages";
  query.protocol = "Simple";
  EXPECT_EQ(chosen(query), "two_shot_staged");
  query.compression = CompressionFormat::int8;
  EXPECT_EQ(chosen(query), "two_shot");
}

// Links limit loads of more channels of the ring, so that lanes are as fast.
TEST(ChooseForGpus, ChoosesLanes_ForLargeSumsInSpiteOfMoreChannelsOfTheRing) {
  Query query = query_on(Collective::all_reduce, 64 << 20);
  query.ring = {.channels = 48, .positions = 4};
  EXPECT_EQ(chosen(query), "two_shot");
  query.lane_channels = 19;
  EXPECT_EQ(chosen(query), "two_shot_staged");
}

// A further communicator has few lanes.
TEST(ChooseForGpus, ChoosesStaging_ForLargeBlocksWithFewLanes) {
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all}) {
    Query query = query_on(collective, 128 << 10);
    query.on_nvlinks = true;
    query.ring = {.channels = 24, .positions = 3};
    query.lane_channels = 7;
    EXPECT_EQ(chosen(query), "direct_staged");
    --query.block_bytes;
    EXPECT_EQ(chosen(query), "direct");
    query.block_bytes = 16 << 20;
    EXPECT_EQ(chosen(query), "direct_staged");
    query.lane_channels = 24;
    EXPECT_EQ(chosen(query), "direct");
    query.lane_channels = 7;
    query.protocol = "LL";
    EXPECT_EQ(chosen(query), "direct") << "staging has no messages";
    query.protocol = "";
    query.compression = CompressionFormat::int8;
    EXPECT_EQ(chosen(query), "direct");
    query.compression = CompressionFormat::none;
    query.mapped = true;
    EXPECT_EQ(chosen(query), "direct_mapped");
    query.mapped = false;
    query.ring = {};
    EXPECT_EQ(chosen(query), "direct");
  }
}

// The loop with which the table runs staged algorithms can reuse as few positions as the ring has.
TEST(ChooseForGpus, ChoosesLoopThatSuitsTheStagingRing) {
  for (const Collective collective :
       {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::broadcast}) {
    Query query = query_on(collective, 1 << 20);
    for (const Algorithm* algorithm : query.catalogue) {
      if (!std::string_view(algorithm->name()).ends_with("_staged") || !algorithm->supports(query.problem)) continue;
      EXPECT_EQ(ruled_out(query, *algorithm, Protocol::simple),
                "needs several GPUs of one host or NVLink domain, each pair connected by NVLink");
      query.algorithm = algorithm->name();
      for (const std::uint32_t positions : {3U, 4U}) {
        query.ring = {.channels = 16, .positions = positions};
        Loop loop = choose(query).value().loop;
        loop.chunks = 16;
        EXPECT_EQ(verify(emit_plans(*algorithm, query.problem), loop).status().message(), "") << positions;
      }
      query.ring = {};
      query.algorithm = "";
    }
  }
}

}  // namespace
}  // namespace tutti::test
