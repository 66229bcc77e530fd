// Statistics of a rank about compressed calls.
#include <gtest/gtest.h>

#include "tests/communicator/compressed_calls.h"

namespace tutti::test {
namespace {

struct Sent {
  Carried all;                 // Sum over all ranks.
  std::vector<Carried> ranks;  // [rank]
};

// Runs one call. Returns the bytes that ranks sent in it, from the difference of their statistics.
Sent sent_by(Communicators& ranks, const Problem& problem, std::size_t count, const CommunicatorOptions& options) {
  std::vector<CompressionStatistics> before;
  for (const auto& rank : ranks) before.push_back(rank->compression_statistics());
  const Outcome outcome = run(ranks, problem, count, options);
  for (const Status& status : outcome.statuses) EXPECT_TRUE(status.ok()) << status.message();
  Sent sent;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const CompressionStatistics after = ranks[rank]->compression_statistics();
    EXPECT_EQ(after.compressed_calls + after.uncompressed_calls,
              before[rank].compressed_calls + before[rank].uncompressed_calls + 1);
    sent.ranks.push_back({after.carried.element_bytes - before[rank].carried.element_bytes,
                          after.carried.message_bytes - before[rank].carried.message_bytes});
    sent.all.element_bytes += sent.ranks.back().element_bytes;
    sent.all.message_bytes += sent.ranks.back().message_bytes;
  }
  return sent;
}

constexpr Rank kSenders = 4;

Problem among_senders(Collective collective) {
  Problem problem;
  problem.collective = collective;
  problem.ranks = kSenders;
  return problem;
}

TEST(CompressionStatistics, MatchBytesSentByAlgorithm) {
  Communicators ranks = make_ranks(kSenders);
  constexpr std::size_t kCount = 128 * kSenders * 5;
  for (const char* algorithm : {"ring", "two_shot"}) {
    const Sent sent = sent_by(ranks, among_senders(Collective::all_reduce), kCount, sending("int8", algorithm));
    for (const Carried& carried : sent.ranks) {  // Each rank sends all blocks but one twice.
      EXPECT_EQ(carried.element_bytes, 2 * (kSenders - 1) * 5 * 128 * 4) << algorithm;
      EXPECT_EQ(carried.message_bytes, 2 * (kSenders - 1) * 5 * 130) << algorithm;
    }
  }
  const Sent gathered = sent_by(ranks, among_senders(Collective::all_gather), 1000, sending("int4", "ring"));
  EXPECT_EQ(gathered.all.element_bytes, kSenders * (kSenders - 1) * 1000 * 4);
  EXPECT_EQ(gathered.all.message_bytes, kSenders * (kSenders - 1) * 8 * 72) << "the last group is as long as others";
  const Sent scattered = sent_by(ranks, among_senders(Collective::scatter), 1000, sending("bf16", "direct"));
  EXPECT_EQ(scattered.ranks[0].element_bytes, (kSenders - 1) * 1000 * 4);
  EXPECT_EQ(scattered.ranks[0].message_bytes, (kSenders - 1) * 8 * 256);
  EXPECT_EQ(scattered.ranks[1].message_bytes, 0);
}

// In any all-reduce, each rank but one sends its contribution, and each but one receives the sum. The total must not
// depend on the algorithm, even if its units have different sizes.
TEST(CompressionStatistics, CountAllBytes_WhenUnitsDiffer) {
  Communicators ranks = make_ranks(kSenders);
  for (const std::size_t count : {1000, 5000, 70'001}) {
    const std::size_t groups = (count + 127) / 128;
    for (const char* algorithm : {"ring", "two_shot", "double_binary_tree", "halving_doubling"}) {
      const Sent sent = sent_by(ranks, among_senders(Collective::all_reduce), count, sending("int8", algorithm));
      EXPECT_EQ(sent.all.element_bytes, 2 * (kSenders - 1) * count * 4) << algorithm << " of " << count;
      EXPECT_EQ(sent.all.message_bytes, 2 * (kSenders - 1) * groups * 130) << algorithm << " of " << count;
    }
  }
}

TEST(CompressionStatistics, CountUncompressedCalls_WithoutBytes) {
  Communicators ranks = make_ranks(kSenders);
  for (const char* compression : {"raw", "int8", "raw", "raw"}) {
    const Sent sent = sent_by(ranks, among_senders(Collective::all_reduce), 3000, sending(compression));
    EXPECT_EQ(sent.all.message_bytes > 0, std::string(compression) == "int8");
  }
  // Not compressed, since a group of 128 in int8 is longer than 3 elements.
  sent_by(ranks, among_senders(Collective::all_reduce), 3, sending("int8"));
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->compression_statistics().compressed_calls, 1U);
    EXPECT_EQ(rank->compression_statistics().uncompressed_calls, 4U);
  }
}

}  // namespace
}  // namespace tutti::test
