// Ranks that make the same call with different options. The error must name the difference.
#include <gtest/gtest.h>

#include "tests/communicator/calls.h"
#include "tests/communicator/ranks.h"

namespace tutti::test {
namespace {

// Returns the error of an all-reduce for which `change` sets the options of each rank. All ranks have the text of the
// rank that detected the mismatch.
template <typename Change>
std::string reported_of(const Change& change) {
  Communicators ranks = make_ranks(2);
  const auto statuses = on_all(ranks, [&](Communicator& communicator) {
    std::vector<float> buffer(5000);
    CommunicatorOptions options = communicator.options();
    change(options, communicator.rank());
    options.update_agreement_hash();
    const Call call = all_reduce(buffer);
    return communicator.run(call, &options);
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::invalid_usage);
    EXPECT_EQ(status.message().find("ranks disagree on collective 1, all_reduce(5000 float32, sum): rank"), 0U)
        << status.message();
  }
  return statuses[0].message();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Returns whether the error names both values, in the order of either rank, since either may detect the mismatch.
bool apart(const std::string& words, const std::string& what, const std::string& first, const std::string& second) {
  return has(words, " rank 0 requests " + what + first + " and rank 1 requests " + second + " (") ||
         has(words, " rank 1 requests " + what + second + " and rank 0 requests " + first + " (");
}

TEST(Disagreement, NamesForcedAlgorithm) {
  const std::string words = reported_of([](CommunicatorOptions& options, Rank rank) {
    options.compression = "bf16";
    if (rank == 0) options.algorithm = "ring";
  });
  EXPECT_TRUE(apart(words, "algorithm ", "ring", "none")) << words;
  EXPECT_FALSE(has(words, "protocol")) << words;
  EXPECT_FALSE(has(words, "compression format")) << words;
  EXPECT_FALSE(has(words, "TUTTI_TUNE")) << words;
}

TEST(Disagreement, NamesCompressionFormats) {
  const std::string words = reported_of(
      [](CommunicatorOptions& options, Rank rank) { options.compression = rank == 0 ? "int8_b32" : "bf16"; });
  EXPECT_TRUE(apart(words, "compression format ", "int8_b32", "bf16")) << words;
  EXPECT_TRUE(has(words, "TUTTI_NCCL_COMPRESS")) << words;
  EXPECT_FALSE(has(words, "algorithm")) << words;
  EXPECT_FALSE(has(words, "channels")) << words;
}

TEST(Disagreement, NamesRankWithoutCompression) {
  const std::string words =
      reported_of([](CommunicatorOptions& options, Rank rank) { options.compression = rank == 0 ? "raw" : "int4"; });
  EXPECT_TRUE(apart(words, "compression format ", "raw", "int4")) << words;
}

TEST(Disagreement, NamesEachDifferentOption) {
  const std::string words = reported_of([](CommunicatorOptions& options, Rank rank) {
    if (rank == 0) options.protocol = "Simple";
    if (rank == 1) options.algorithm = "two_shot";
  });
  EXPECT_TRUE(apart(words, "protocol ", "Simple", "none")) << words;
  EXPECT_TRUE(apart(words, "algorithm ", "none", "two_shot")) << words;
}

TEST(Disagreement, NamesAutotuningSettings) {
  const std::string words = reported_of([](CommunicatorOptions& options, Rank rank) {
    options.compression = "int8";  // Compressed calls are not autotuned.
    options.tune = rank == 0 ? Tune::all : Tune::off;
    if (rank == 0) options.tune_file = "tuned";
  });
  EXPECT_TRUE(apart(words, "autotuning ", "1 with a file", "0")) << words;
  EXPECT_FALSE(has(words, "compression format")) << words;
}

// The rank with a file distributes saved results first, in a call of the library.
TEST(Disagreement, NamesRankWithTuneFile_WhenAllAutotune) {
  const std::string words = reported_of([](CommunicatorOptions& options, Rank rank) {
    options.tune = Tune::all;
    if (rank == 0) options.tune_file = "tuned";
  });
  EXPECT_TRUE(apart(words, "autotuning ", "1 with a file", "1")) << words;
}

// NCCL's variables are ignored where they do not apply, so ranks could run different algorithms.
TEST(Disagreement, NamesVariablesOfNccl_WhenOneRankUsesThem) {
  const std::string algorithms = reported_of([](CommunicatorOptions& options, Rank rank) {
    options.algorithm = "ring";
    options.algorithm_is_from_nccl = rank == 0;
  });
  EXPECT_TRUE(has(algorithms, "NCCL_ALGO")) << algorithms;
  const std::string protocols = reported_of([](CommunicatorOptions& options, Rank rank) {
    options.protocol = "Simple";
    options.protocol_is_from_nccl = rank == 0;
  });
  EXPECT_TRUE(has(protocols, "NCCL_PROTO")) << protocols;
}

}  // namespace
}  // namespace tutti::test
