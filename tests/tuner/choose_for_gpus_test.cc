// Choices of the table for GPUs that depend on more than sizes.
#include <gtest/gtest.h>

#include "src/tuner/candidates.h"
#include "src/tuner/coding.h"
#include "tests/tuner/gpu_query.h"

namespace tutti::test {
namespace {

// Rings are chosen even with mapped memory. All-to-all uses another algorithm.
TEST(ChooseForGpus, ChoosesRings_WhenOnlyRingsFollowNvLinks) {
  const std::pair<Collective, std::string_view> wanted[] = {{Collective::all_reduce, "ring"},
                                                            {Collective::all_gather, "ring"},
                                                            {Collective::reduce_scatter, "ring"},
                                                            {Collective::broadcast, "chain"},
                                                            {Collective::reduce, "chain"}};
  for (const auto& [collective, name] : wanted) {
    for (const bool mapped : {false, true}) {
      Query query = query_on(collective, 1 << 20);
      query.mapped = mapped;
      EXPECT_NE(chosen(query), name);
      query.only_rings = true;
      EXPECT_EQ(chosen(query), name) << tutti::name(collective);
      query.block_bytes = 64;
      EXPECT_NE(chosen(query), name) << "so little goes in fewer rounds";
    }
  }
  Query to_all = query_on(Collective::all_to_all, 1 << 20);
  to_all.only_rings = true;
  EXPECT_EQ(chosen(to_all), "direct");
}

// Lanes have four slots of 4 KiB on each channel.
TEST(ChooseForGpus, ChoosesLl_WhileMessagesFitInSlots) {
  const auto protocol = [](Query query) { return choose(query).value().protocol; };
  for (const auto& [collective, bytes] : {std::pair(Collective::all_reduce, 1 << 20),
                                          {Collective::all_gather, 24 * 4 * 4096},
                                          {Collective::reduce_scatter, 24 * 4 * 4096},
                                          {Collective::all_to_all, 24 * 4 * 4096},
                                          {Collective::broadcast, 1 << 20},
                                          {Collective::reduce, 1 << 20},
                                          {Collective::gather, 24 * 4 * 4096},
                                          {Collective::scatter, 24 * 4 * 4096}}) {
    Query query = query_on(collective, static_cast<std::uint64_t>(bytes));
    query.on_nvlinks = true;
    EXPECT_EQ(protocol(query), Protocol::ll) << name(collective);
    ++query.block_bytes;
    EXPECT_EQ(protocol(query), Protocol::simple) << name(collective);
    query.block_bytes = 65537;
    query.on_nvlinks = false;
    EXPECT_EQ(protocol(query), Protocol::simple) << name(collective) << " over PCIe, where bytes count";
  }
  Query query = query_on(Collective::all_reduce, 512 << 10);
  query.on_nvlinks = true;
  EXPECT_EQ(protocol(query), Protocol::ll);
  query.ll_slot_bytes = 512;
  EXPECT_EQ(protocol(query), Protocol::simple);
  query.ll_slot_bytes = 1 << 20;
  query.max_channels = 3;
  EXPECT_EQ(protocol(query), Protocol::simple);
  query.channels = 8;
  EXPECT_EQ(protocol(query), Protocol::ll);
  query.lane_channels = 3;
  EXPECT_EQ(protocol(query), Protocol::simple);
}

// The kernel of LL messages runs one chunk after the other.
TEST(ChooseForGpus, OverlapsChunks_ButNotOfLl) {
  for (const std::string_view protocol : kProtocols) {
    Query query = query_on(Collective::all_reduce, 1 << 20);
    query.algorithm = "two_shot";
    query.protocol = protocol;
    EXPECT_EQ(choose(query).value().loop.skew, query.protocol == "LL" ? 0U : 1U) << protocol;
  }
}

// Accesses to peers' buffers exchange addresses first, which takes longer than the additional bytes of LL.
TEST(ChooseForGpus, ChoosesLl_ForWindowsOfMediumSize) {
  Query query = query_on(Collective::all_reduce, 1024 << 10);
  query.mapped = query.on_nvlinks = true;
  EXPECT_EQ(choose(query).value().protocol, Protocol::ll);
  EXPECT_EQ(chosen(query), "two_shot");
  ++query.block_bytes;
  EXPECT_EQ(chosen(query), "two_shot_mapped");
  query.ring = {.channels = 24, .positions = 4};
  EXPECT_EQ(chosen(query), "two_shot_staged");
  query.ring = {};
  query.block_bytes = 256 << 10;
  query.protocol = "Simple";
  EXPECT_EQ(chosen(query), "two_shot_mapped");
  query.protocol = "";
  query.lane_channels = 1;
  EXPECT_EQ(chosen(query), "two_shot_mapped") << "messages do not fit in slots";
  query.lane_channels = 24;
  query.on_nvlinks = false;
  EXPECT_EQ(chosen(query), "two_shot_mapped") << "over PCIe bytes count";
  Query blocks = query_on(Collective::all_gather, 24 * 4 * 4096);
  blocks.mapped = blocks.on_nvlinks = true;
  EXPECT_EQ(chosen(blocks), "direct");
  ++blocks.block_bytes;
  EXPECT_EQ(chosen(blocks), "direct_mapped");
}

// A root's links pass all messages of direct.
TEST(ChooseForGpus, ChoosesTreesAndChains_ForLongBlocksOfARoot) {
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    const auto on = [&](Rank ranks, std::uint64_t bytes, bool nvlinks = true, bool mapped = false) {
      Query query = query_on(collective, bytes);
      query.problem.ranks = ranks;
      query.on_nvlinks = nvlinks;
      query.mapped = mapped;
      return std::string(chosen(query));
    };
    EXPECT_EQ(on(8, 128 << 10), "direct");
    EXPECT_EQ(on(8, (128 << 10) + 1), "binary_tree");
    EXPECT_EQ(on(8, 8 << 20), "binary_tree");
    EXPECT_EQ(on(8, (8 << 20) + 1), "chain");
    EXPECT_EQ(on(2, 64 << 20), "direct") << "the root has one peer";
    EXPECT_EQ(on(9, 64 << 20), "binary_tree");
    EXPECT_EQ(on(8, 64 << 20, false), "direct");
    const bool broadcasts = collective == Collective::broadcast;
    EXPECT_EQ(on(8, 1 << 20, true, true), "binary_tree");
    EXPECT_EQ(on(8, 2 << 20, true, true), broadcasts ? "split_mapped" : "binary_tree");
    EXPECT_EQ(on(9, 64 << 10, true, true), broadcasts ? "split_mapped" : "binary_tree");
  }
}

// Accesses to peers' buffers save copies, but wait for each peer.
TEST(ChooseForGpus, ChoosesLanes_ForShortExchangesOfWindows) {
  Query query = query_on(Collective::all_to_all, (16 << 20) - 1);
  query.mapped = query.on_nvlinks = true;
  EXPECT_EQ(chosen(query), "direct");
  ++query.block_bytes;
  EXPECT_EQ(chosen(query), "direct_mapped");
}

TEST(ChooseForGpus, ChoosesSimple_ForPeersMemory) {
  Query query = query_on(Collective::all_reduce, 64 << 10);
  query.mapped = true;
  const Choice choice = choose(query).value();
  EXPECT_EQ(choice.algorithm, "two_shot_mapped");
  EXPECT_EQ(choice.protocol, Protocol::simple);
}

TEST(Candidates, ExcludeStaging_OnHostMemory) {
  Query query = query_on(Collective::all_reduce, 1 << 20);
  query.thread_blocks = 0;
  query.mapped = true;
  EXPECT_EQ(ruled_out(query, *find(Collective::all_reduce, "two_shot_staged"), Protocol::simple), "GPUs only");
}

// A host's link carries each block once.
TEST(ChooseForGpus, ReducesInsideHostsFirst) {
  Query query = query_on(Collective::reduce, 1 << 20);
  query.network = true;
  EXPECT_EQ(chosen(query), "direct");
  query.problem.groups = {{4, 4}};
  EXPECT_EQ(chosen(query), "hierarchical");
  query.block_bytes = 64;
  EXPECT_EQ(chosen(query), "direct");
}

TEST(ChooseForGpus, ChoosesRings_WithinAndAcrossHosts) {
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                      Collective::broadcast, Collective::reduce}) {
    Query query = query_on(collective, 1 << 20);
    query.problem.groups = {{4, 4}};
    query.network = query.only_rings = true;
    const Algorithm* algorithm = find(collective, chosen(query));
    ASSERT_NE(algorithm, nullptr) << tutti::name(collective);
    EXPECT_TRUE(algorithm->supports(query.problem)) << tutti::name(collective);
  }
  Query query = query_on(Collective::all_reduce, 1 << 20);
  query.problem.groups = {{4, 4}};
  query.network = query.only_rings = true;
  EXPECT_EQ(chosen(query), "hierarchical_ring");
}

TEST(ChooseForGpus, ChoosesAlgorithmsThatSupportCompression) {
  for (std::uint32_t c = 0; c < kCollectives; ++c) {
    for (const Rank ranks : {2U, 5U, 8U, 16U}) {
      for (const std::uint64_t bytes : {130U, 4096U, 65536U, 1U << 20, 64U << 20}) {
        for (const bool whole : {false, true}) {  // All memory is mapped, or some ranks are on other hosts.
          Query query = query_on(static_cast<Collective>(c), bytes);
          query.problem.ranks = ranks;
          query.mapped = whole;
          query.network = !whole;
          query.compression = CompressionFormat::int8;
          const Choice choice = choose(query).value();
          const Algorithm* algorithm = find(query.problem.collective, choice.algorithm);
          ASSERT_NE(algorithm, nullptr) << choice.algorithm;
          EXPECT_TRUE(!choice.mapped && algorithm->supports_compression(query.problem))
              << choice.algorithm << " " << bytes;
          EXPECT_EQ(choice.compression, CompressionFormat::int8) << choice.algorithm << " " << bytes;
        }
      }
    }
  }
}

TEST(ChooseForGpus, SharesElements_NotMessages) {
  Query query = query_on(Collective::all_reduce, 256 << 10);
  query.protocol = "Simple";
  const std::uint32_t raw = choose(query).value().channels;
  ASSERT_GT(raw, 1U);
  query.compression = CompressionFormat::int8;
  EXPECT_EQ(choose(query).value().channels, raw);
}

// With few channels, thread blocks and not links limit large calls.
TEST(ChooseForGpus, UsesAllLaneChannels_ForLargeCalls) {
  Query query = query_on(Collective::all_reduce, 16 << 20);
  EXPECT_EQ(choose(query).value().channels, 24U);
  query.lane_channels = 30;
  EXPECT_EQ(choose(query).value().channels, 30U);
}

TEST(ChooseForGpus, RespectsNumberOfChannels) {
  Query query = query_on(Collective::all_reduce, 16 << 20);
  const auto channels = [&](std::string_view algorithm) {
    query.algorithm = algorithm;
    return choose(query).value().channels;
  };
  const std::uint32_t max = channels("two_shot");
  ASSERT_GT(max, 4U);
  query.lane_channels = 4;
  EXPECT_EQ(channels("two_shot"), 4U);
  query.mapped = true;
  EXPECT_GT(channels("two_shot_mapped"), 4U) << "it has no lanes";
  query.orders = 3;
  EXPECT_EQ(channels("ring"), 3U);
  EXPECT_EQ(channels("two_shot"), 4U) << "it goes through ranks in no order";
  query.channels = 2;
  EXPECT_EQ(channels("ring"), 2U) << "requested channels are used";
  query.channels = 40;
  EXPECT_EQ(channels("two_shot_mapped"), query.thread_blocks);
  EXPECT_EQ(channels("two_shot"), 4U);
}

TEST(ChooseForGpus, KeepsChannelsWithinBounds) {
  Query query = query_on(Collective::all_reduce, 16 << 20);
  query.algorithm = "two_shot";
  const std::uint32_t usual = choose(query).value().channels;
  ASSERT_GT(usual, 2U);
  query.max_channels = 2;
  EXPECT_EQ(choose(query).value().channels, 2U);
  query.max_channels = usual + 1;
  EXPECT_EQ(choose(query).value().channels, usual);
  query.problem = query_on(Collective::all_reduce, 8).problem;
  query.block_bytes = 8;
  ASSERT_EQ(choose(query).value().channels, 1U);
  query.min_channels = 3;
  EXPECT_EQ(choose(query).value().channels, 3U);
  query.lane_channels = 2;
  EXPECT_EQ(choose(query).value().channels, 2U) << "the minimum is above the available number";
  query.channels = 1;
  EXPECT_EQ(choose(query).value().channels, 1U) << "a requested number overrides bounds";
}

// Each channel encodes its share: with few channels that takes longer than it saves.
TEST(ChooseForGpus, WeighsFormats_ByNumberOfChannels) {
  Machine machine = machine_of_devices();
  machine.levels[1].rank_gbytes_per_s = 10;
  for (const CompressionFormat each : kBoundedFormats) {
    const auto at = static_cast<std::size_t>(each);
    machine.costs.encode_gbytes_per_s[at] = machine.costs.decode_gbytes_per_s[at] = 5;
  }
  const auto format = [&](std::uint32_t channels, std::uint32_t lane_channels) {
    Query query = query_on(Collective::all_reduce, 16 << 20);
    query.network = true;
    query.machine = &machine;
    query.max_relative_error = 0.0101;
    query.channels = channels;
    query.lane_channels = lane_channels;
    return choose(query).value().compression;
  };
  EXPECT_EQ(format(0, 8), CompressionFormat::int8);
  EXPECT_EQ(format(1, 8), CompressionFormat::none);
  EXPECT_EQ(format(0, 1), CompressionFormat::none);
}

// The fastest format within the bound is chosen, if the gain justifies its loss of precision.
TEST(ChooseForGpus, ChoosesFormatWithinBound_WhenFaster) {
  const auto format = [](Query query, double bound) {
    query.max_relative_error = bound;
    const Choice choice = choose(query).value();
    EXPECT_EQ(candidates(query).value().front().choice.compression, choice.compression);
    EXPECT_EQ(candidates(query).value().front().choice.algorithm, choice.algorithm);
    return choice.compression;
  };
  Query far = query_on(Collective::all_reduce, 16 << 20);
  far.network = true;
  EXPECT_EQ(format(far, 0), CompressionFormat::none);
  EXPECT_EQ(format(far, 0.0025), CompressionFormat::bf16);
  EXPECT_EQ(format(far, 0.0101), CompressionFormat::int8);
  EXPECT_EQ(format(far, 0.0001), CompressionFormat::none) << "none keeps to it";
  far.block_bytes = 2048;
  EXPECT_EQ(format(far, 0.0101), CompressionFormat::none) << "rounds count, and not bytes";
  Machine slow = machine_of_devices();
  slow.levels[1].rank_gbytes_per_s = 0.1;
  far.machine = &slow;
  EXPECT_EQ(format(far, 0.0101), CompressionFormat::int8);

  Query near = query_on(Collective::all_reduce, 16 << 20);
  near.mapped = true;
  EXPECT_EQ(format(near, 0.0101), CompressionFormat::none) << "in mapped memory nothing is sent";
  for (const char* forced : {"one_shot", "recursive_doubling"}) {
    far.algorithm = forced;
    EXPECT_EQ(format(far, 0.3), CompressionFormat::none) << "the algorithm does not support compression";
  }
  far.algorithm = "";
  far.network = false;
  far.protocol = "LL";
  EXPECT_EQ(format(far, 0.3), CompressionFormat::none) << "formats go in Simple";
}

}  // namespace
}  // namespace tutti::test
