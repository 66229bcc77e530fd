// Compressed calls: all ranks have the same result bits, and errors are within the documented bounds.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "algorithms/catalogue.h"
#include "src/compression/format.h"
#include "tests/base/case_sampling.h"
#include "tests/communicator/compressed_calls.h"

namespace tutti::test {
namespace {

class Compression : public testing::TestWithParam<Rank> {};

TEST_P(Compression, IsWithinDocumentedError_AndIdenticalOnAllRanks) {
  Communicators ranks = make_ranks(GetParam());
  OneOf cases(7, GetParam());
  for (Problem problem : problems_of(GetParam())) {
    for (const Algorithm* algorithm : catalogue(problem.collective)) {
      const bool mapped = accesses_peers(algorithm->name());
      if (mapped || !algorithm->supports(problem) || !algorithm->supports_compression(problem)) continue;
      for (const char* compression : {"bf16", "int8", "int8_b32", "fp8_e4m3", "int4"}) {
        for (const std::size_t count : {100, 130, 5000, 70'001}) {  // Less than a group of 128, and partial groups.
          if (!cases.takes()) continue;
          SCOPED_TRACE(describe(problem) + " by " + algorithm->name() + ", " + compression + " " +
                       std::to_string(count));
          const Outcome outcome = run(ranks, problem, count, sending(compression, algorithm->name()));
          for (const Status& status : outcome.statuses) ASSERT_TRUE(status.ok()) << status.message();
          ASSERT_STREQ(outcome.ran.compression, compression);
          const bool all_alike = rounded_stores_of(problem.collective) != RoundedStores::none;
          for (const auto& output : outcome.outputs) {
            if (all_alike) {
              ASSERT_EQ(std::memcmp(output.data(), outcome.outputs[0].data(), output.size() * sizeof(float)), 0);
            }
          }
          const double error = error_of(outcome, problem, count);
          ASSERT_LE(error, (count < 5000 ? 2 : 1.15) * outcome.ran.error);
          const bool all_travel = all_alike && count >= 5000 && GetParam() > 1;
          if (all_travel) {
            // The call was compressed, and the documented error is tight.
            ASSERT_GE(error, 0.8 * outcome.ran.error);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Compression, testing::Values(2, 3, 4, 5));

// Each buffer ends after the last element, so that AddressSanitizer detects accesses beyond it.
TEST_P(Compression, Supports16BitElementsInPlace) {
  Communicators ranks = make_ranks(GetParam());
  OneOf cases(5, GetParam());
  for (const DataType type : {DataType::float16, DataType::bfloat16}) {
    for (const Reduction reduction : {Reduction::sum, Reduction::avg}) {
      for (const char* compression : {"int8", "int4", "fp8_e5m2"}) {
        for (const std::size_t count : {1, 100, 1000, 5001}) {
          if (!cases.takes()) continue;
          SCOPED_TRACE(std::string(name(type)) + " " + compression + " " + std::to_string(count));
          const std::uint16_t one = type == DataType::float16 ? 0x3c00 : 0x3f80;
          std::vector<std::vector<std::uint16_t>> values(ranks.size(), std::vector<std::uint16_t>(count, one));
          const CommunicatorOptions options = sending(compression);
          const auto statuses = on_all(ranks, [&](Communicator& communicator) {
            Call call;
            call.type = type;
            call.reduction = reduction;
            call.count = count;
            call.output = reinterpret_cast<std::byte*>(values[communicator.rank()].data());
            call.input = call.output;
            return communicator.run(call, &options);
          });
          for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
          for (const auto& each : values) ASSERT_EQ(each, values[0]);
          // Equal numbers in a block have its largest code. The average of ones is thus one, except for the rounding of
          // scales.
          const int off = static_cast<int>(values[0][count - 1]) - one;
          if (reduction == Reduction::avg) {
            ASSERT_LE(std::abs(off), type == DataType::float16 ? 16 : 2);
          }
        }
      }
    }
  }
}

TEST(CompressionOptions, EndIdentical_AcrossHosts) {
  CommunicatorOptions patient;
  patient.timeout_ms = 60'000;
  Communicators ranks = std::move(Communicator::create_all(Hosts(std::vector<Rank>{0, 0, 1, 1}), patient)).value();
  for (const char* algorithm : {"", "hierarchical", "hierarchical_ring"}) {
    for (const std::size_t count : {100, 70'001}) {
      SCOPED_TRACE(std::string(algorithm) + " " + std::to_string(count));
      const Problem problem{.collective = Collective::all_reduce, .ranks = 4, .groups = {}};
      const Outcome outcome = run(ranks, problem, count, sending("int8", algorithm));
      for (const Status& status : outcome.statuses) ASSERT_TRUE(status.ok()) << status.message();
      for (const auto& output : outcome.outputs) ASSERT_EQ(output, outcome.outputs[0]);
      EXPECT_LE(error_of(outcome, problem, count), 1.3 * outcome.ran.error);
    }
  }
}

TEST(CompressionOptions, HaveNoEffect_WithOneRank) {
  Communicators alone = make_ranks(1);
  std::vector<float> values = {0.5F, 0.3F, 1.0F};
  const CommunicatorOptions options = sending("int4");
  Call call;
  call.count = values.size();
  call.output = reinterpret_cast<std::byte*>(values.data());
  call.input = call.output;
  EXPECT_TRUE(alone[0]->run(call, &options).ok());
  EXPECT_EQ(values, (std::vector<float>{0.5F, 0.3F, 1.0F}));
  EXPECT_STREQ(alone[0]->last_run().compression, "raw");
}

TEST(CompressionOptions, HaveNoEffect_OnUnsupportedTypes) {
  Communicators ranks = make_ranks(2);
  std::vector<std::int32_t> integers(1000, 123456789), sums(2000);
  const CommunicatorOptions options = sending("int8");
  const auto statuses = on_all(ranks, [&](Communicator& communicator) {
    Call call;
    call.type = DataType::int32;
    call.count = integers.size();
    call.input = reinterpret_cast<const std::byte*>(integers.data());
    call.output = reinterpret_cast<std::byte*>(sums.data() + communicator.rank() * integers.size());
    return communicator.run(call, &options);
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_STREQ(ranks[0]->last_run().compression, "raw");
  EXPECT_EQ(sums, std::vector<std::int32_t>(2000, 246913578));
}

TEST(CompressionOptions, HaveNoEffect_OnSmallBlocks) {
  Communicators ranks = make_ranks(2);
  const Problem problem{.collective = Collective::all_reduce, .ranks = 2, .groups = {}};
  for (const std::size_t count : {1, 32}) {  // A group of int8 has 130 bytes.
    const Outcome outcome = run(ranks, problem, count, sending("int8"));
    for (const Status& status : outcome.statuses) ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_STREQ(outcome.ran.compression, "raw");
  }
  EXPECT_STREQ(run(ranks, problem, 33, sending("int8")).ran.compression, "int8");
}

TEST(CompressionOptions, RejectAlgorithms_WhoseRanksWouldDiffer) {
  Communicators ranks = make_ranks(2);
  for (const char* algorithm : {"one_shot", "recursive_doubling", "two_shot_mapped"}) {
    const Problem problem{.collective = Collective::all_reduce, .ranks = 2, .groups = {}};
    const Outcome outcome = run(ranks, problem, 1000, sending("int8", algorithm));
    for (const Status& status : outcome.statuses) {
      EXPECT_EQ(status.code(), Code::unsupported);
      EXPECT_NE(status.message().find("int8"), std::string::npos) << status.message();
    }
  }
}

TEST(CompressionOptions, MustMatchOnAllRanks) {
  expect_disagreement(sending("int8"), sending("raw"), "requests compression format");
}

}  // namespace
}  // namespace tutti::test
