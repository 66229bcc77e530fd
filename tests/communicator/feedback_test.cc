// Error feedback and stochastic rounding of compressed calls on host memory. No quantization error is lost, and random
// numbers are reproducible.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "algorithms/catalogue.h"
#include "tests/communicator/ranks.h"

namespace tutti::test {
namespace {

using Floats = std::vector<float>;

CommunicatorOptions sending(const std::string& compression, const std::string& algorithm,
                            RequestedRounding rounding = {}) {
  CommunicatorOptions options;
  options.timeout_ms = 60'000;
  options.compression = compression;
  options.algorithm = algorithm;
  options.compression_rounding = rounding;
  options.update_agreement_hash();
  return options;
}

struct FeedbackCase {
  Problem problem;
  std::size_t count = 0;
  Reduction reduction = Reduction::sum;
  bool in_place = false;
};

// Buffers of all ranks, for several calls.
struct Buffers {
  std::vector<Floats> inputs, outputs, residuals;  // [rank]
};

Buffers buffers_of(const FeedbackCase& test_case, unsigned seed) {
  Buffers buffers;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (Rank rank = 0; rank < test_case.problem.ranks; ++rank) {
    const std::size_t inputs = input_blocks(test_case.problem, rank) * test_case.count;
    buffers.inputs.emplace_back(inputs);
    for (float& value : buffers.inputs.back()) value = normal(random);
    buffers.outputs.emplace_back(output_blocks(test_case.problem, rank) * test_case.count, NAN);
    buffers.residuals.emplace_back(inputs);
    for (float& value : buffers.residuals.back()) value = 0.01F * normal(random);
  }
  return buffers;
}

// Runs a call with copies of the inputs, since calls in place overwrite them. Expects that other calls leave inputs
// unchanged.
void run(Communicators& ranks, const FeedbackCase& test_case, const CommunicatorOptions& options, Buffers& buffers) {
  std::vector<Floats> passed = buffers.inputs;
  const auto statuses = on_all(ranks, [&](Communicator& communicator) {
    const Rank rank = communicator.rank();
    const bool has_output = !buffers.outputs[rank].empty();
    const bool own_block = test_case.problem.collective == Collective::reduce_scatter;
    float* const place = passed[rank].data() + (own_block ? rank * test_case.count : 0);
    Call call;
    call.collective = test_case.problem.collective;
    call.reduction = test_case.reduction;
    call.root = test_case.problem.root;
    call.count = test_case.count;
    call.input = reinterpret_cast<const std::byte*>(passed[rank].data());
    call.output = reinterpret_cast<std::byte*>(test_case.in_place ? place : buffers.outputs[rank].data());
    if (!buffers.residuals.empty()) call.residual = buffers.residuals[rank].data();
    Status status = communicator.run(call, &options);
    if (test_case.in_place && has_output) std::copy_n(place, test_case.count, buffers.outputs[rank].begin());
    return status;
  });
  for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
  for (Rank rank = 0; rank < ranks.size(); ++rank) {
    const bool overwritten = test_case.in_place && !buffers.outputs[rank].empty();
    if (!overwritten) {
      ASSERT_EQ(passed[rank], buffers.inputs[rank]) << "rank " << rank << "'s input is not the library's";
    }
  }
}

// Expects that the sum of inputs and previous residuals equals the sum of outputs and new residuals, and that some
// residual has changed.
void expect_nothing_lost(const FeedbackCase& test_case, const Buffers& before, const Buffers& after) {
  double moved = 0;
  for (Rank rank = 0; rank < test_case.problem.ranks; ++rank) {
    const bool scattered = test_case.problem.collective == Collective::reduce_scatter;
    for (std::size_t i = 0; i < after.outputs[rank].size(); ++i) {
      const std::size_t at = i + (scattered ? rank * test_case.count : 0);
      double given = 0;
      for (Rank peer = 0; peer < test_case.problem.ranks; ++peer) {
        given += static_cast<double>(before.inputs[peer][at]) + before.residuals[peer][at] - after.residuals[peer][at];
        moved += std::abs(before.residuals[peer][at] - after.residuals[peer][at]);
      }
      if (test_case.reduction == Reduction::avg) given /= test_case.problem.ranks;
      ASSERT_NEAR(after.outputs[rank][i], given, 2e-5) << "rank " << rank << ", element " << i;
    }
  }
  ASSERT_GT(moved, 0);
}

void expect_nothing_lost_by_any_algorithm(Communicators& ranks, const std::vector<std::vector<Rank>>& groups) {
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::reduce}) {
    const auto n = static_cast<Rank>(ranks.size());
    FeedbackCase test_case{.problem = {.collective = collective, .ranks = n, .root = 0, .groups = {}}};
    test_case.problem.root = collective == Collective::reduce ? n / 2 : 0;
    Problem grouped = test_case.problem;
    grouped.groups = groups;
    for (const Algorithm* algorithm : catalogue(collective)) {
      const bool mapped = accesses_peers(algorithm->name());
      if (mapped || !algorithm->supports(grouped) || !algorithm->supports_compression(grouped)) continue;
      unsigned seed = 0;
      for (const char* compression : {"int8", "int4", "fp8_e4m3"}) {
        for (test_case.count = 100; test_case.count <= 40'001; test_case.count = test_case.count * 20 + 1) {
          ++seed;
          test_case.reduction = seed % 2 == 0 ? Reduction::sum : Reduction::avg;
          test_case.in_place = seed % 3 == 0;
          const auto rounding = seed % 4 == 0 ? Rounding::stochastic : Rounding::nearest;
          SCOPED_TRACE(describe(test_case.problem) + " by " + algorithm->name() + ", " + compression + " of " +
                       std::to_string(test_case.count) + ", seed " + std::to_string(seed));
          const Buffers before = buffers_of(test_case, seed);
          Buffers after = before;
          ASSERT_NO_FATAL_FAILURE(run(ranks, test_case, sending(compression, algorithm->name(), {rounding, 5}), after));
          ASSERT_STREQ(ranks[0]->last_run().compression, compression);
          ASSERT_NO_FATAL_FAILURE(expect_nothing_lost(test_case, before, after));
        }
      }
    }
  }
}

class ErrorFeedback : public testing::TestWithParam<Rank> {};

TEST_P(ErrorFeedback, LosesNothing_WithAnyAlgorithm) {
  Communicators ranks = make_ranks(GetParam());
  expect_nothing_lost_by_any_algorithm(ranks, {});
}

INSTANTIATE_TEST_SUITE_P(Ranks, ErrorFeedback, testing::Values(2, 3, 4, 5));

TEST(ErrorFeedbackAcrossHosts, LosesNothing_WithAnyAlgorithm) {
  CommunicatorOptions patient;
  patient.timeout_ms = 60'000;
  Communicators ranks = std::move(Communicator::create_all(Hosts(std::vector<Rank>{0, 0, 1, 1}), patient)).value();
  expect_nothing_lost_by_any_algorithm(ranks, {{2, 2}});
}

// Values of 16 bits are rounded when they are stored, and feedback does not recover that error. Compression errors are
// some hundred times larger, so the average over 64 calls must be within 2 %.
TEST(ErrorFeedbackOf16BitTypes, IsUnbiased) {
  constexpr int kCalls = 64;
  constexpr std::size_t kCount = 1000;
  Communicators ranks = make_ranks(3);
  const std::uint16_t third = 0x3eab;  // 0.333984375 in bfloat16.
  for (const char* algorithm : {"two_shot", "ring"}) {
    const CommunicatorOptions options = sending("int4", algorithm);
    std::vector<double> delivered(kCount, 0);
    std::vector<Floats> residuals(3, Floats(kCount, 0));
    for (int call = 0; call < kCalls; ++call) {
      std::vector<std::vector<std::uint16_t>> values(3, std::vector<std::uint16_t>(kCount, third));
      for (auto& each : values) {
        for (std::size_t i = 0; i < kCount; i += 32) each[i] = 0x3f80;  // The largest element of its block.
      }
      const auto statuses = on_all(ranks, [&](Communicator& communicator) {
        Call made;
        made.type = DataType::bfloat16;
        made.count = kCount;
        made.input = made.output = reinterpret_cast<std::byte*>(values[communicator.rank()].data());
        made.residual = residuals[communicator.rank()].data();
        return communicator.run(made, &options);
      });
      for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_EQ(values[1], values[0]);
      ASSERT_EQ(values[2], values[0]);
      for (std::size_t i = 0; i < kCount; ++i) delivered[i] += std::bit_cast<float>(std::uint32_t{values[0][i]} << 16);
    }
    for (std::size_t i = 0; i < kCount; ++i) {
      const double given = i % 32 == 0 ? 3 : 3 * 0.333984375;
      EXPECT_NEAR(delivered[i] / kCalls / given, 1, 0.02) << algorithm << " " << i;
    }
  }
}

TEST(Residuals, StayUnchanged_WhenMessagesAreUncompressed) {
  Communicators ranks = make_ranks(2);
  FeedbackCase test_case{.problem = {.collective = Collective::all_reduce, .ranks = 2, .groups = {}}, .count = 20};
  const Buffers before = buffers_of(test_case, 1);
  for (const bool in_place : {false, true}) {
    test_case.in_place = in_place;
    Buffers after = before;
    run(ranks, test_case, sending("int8", ""), after);  // Too few elements to compress.
    EXPECT_STREQ(ranks[0]->last_run().compression, "raw");
    EXPECT_EQ(after.residuals, before.residuals);
    for (std::size_t i = 0; i < test_case.count; ++i)
      EXPECT_EQ(after.outputs[0][i], before.inputs[0][i] + before.inputs[1][i]);
  }
}

// One input is infinite in the first call. Residuals must stay finite, or they would spoil all later calls.
TEST(Residuals, StayFinite_AfterNonFiniteInput) {
  Communicators ranks = make_ranks(2);
  const FeedbackCase test_case{.problem = {.collective = Collective::all_reduce, .ranks = 2, .groups = {}},
                               .count = 5000};
  Buffers buffers = buffers_of(test_case, 2);
  const float spoilt = std::exchange(buffers.inputs[1][300], INFINITY);
  run(ranks, test_case, sending("int8", ""), buffers);
  EXPECT_FALSE(std::isfinite(buffers.outputs[0][300]));
  for (const Floats& residual : buffers.residuals) {
    for (const float rest : residual) ASSERT_TRUE(std::isfinite(rest));
  }
  buffers.inputs[1][300] = spoilt;
  const Buffers before = buffers;
  run(ranks, test_case, sending("int8", ""), buffers);
  expect_nothing_lost(test_case, before, buffers);
}

CommunicatorOptions at_random(const char* compression, std::uint64_t seed, const char* algorithm = "") {
  return sending(compression, algorithm, {Rounding::stochastic, seed});
}

TEST(StochasticRounding, IsIdenticalOnAllRanks_WithAnyAlgorithm) {
  for (const Rank n : {Rank{3}, Rank{4}}) {
    Communicators ranks = make_ranks(n);
    for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::broadcast}) {
      FeedbackCase test_case{.problem = {.collective = collective, .ranks = n, .root = 0, .groups = {}}, .count = 7001};
      for (const Algorithm* algorithm : catalogue(collective)) {
        const bool mapped = accesses_peers(algorithm->name());
        if (mapped || !algorithm->supports(test_case.problem) || !algorithm->supports_compression(test_case.problem))
          continue;
        SCOPED_TRACE(describe(test_case.problem) + " by " + algorithm->name());
        Buffers buffers = buffers_of(test_case, 3);
        buffers.residuals.clear();
        run(ranks, test_case, at_random("int8", 1, algorithm->name()), buffers);
        for (const Floats& output : buffers.outputs) ASSERT_EQ(output, buffers.outputs[0]);
      }
    }
  }
}

// A 16-bit result cannot store the decoded value exactly. A rank that rounds the stored value stochastically again
// would send another code.
TEST(StochasticRounding, IsIdenticalOnAllRanks_For16BitTypes) {
  constexpr std::size_t kCount = 7001;
  const Problem problem{.collective = Collective::all_reduce, .ranks = 4, .groups = {}};
  Communicators ranks = make_ranks(problem.ranks);
  for (const Algorithm* algorithm : catalogue(problem.collective)) {
    const bool mapped = accesses_peers(algorithm->name());
    if (mapped || !algorithm->supports(problem) || !algorithm->supports_compression(problem)) continue;
    std::vector<std::vector<std::uint16_t>> values;
    std::mt19937 random(8);
    for (Rank rank = 0; rank < problem.ranks; ++rank) {
      for (auto& value : values.emplace_back(kCount))
        value = static_cast<std::uint16_t>(0x3f00 + random() % 256 + (random() % 2 << 15));
    }
    const CommunicatorOptions options = at_random("int8", 2, algorithm->name());
    const auto statuses = on_all(ranks, [&](Communicator& communicator) {
      Call call;
      call.type = DataType::bfloat16;
      call.count = kCount;
      call.input = call.output = reinterpret_cast<std::byte*>(values[communicator.rank()].data());
      return communicator.run(call, &options);
    });
    for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
    for (const auto& each : values) EXPECT_EQ(each, values[0]) << algorithm->name();
  }
}

TEST(StochasticRounding, IsReproducible_WithSameSeed) {
  const FeedbackCase test_case{.problem = {.collective = Collective::all_reduce, .ranks = 3, .groups = {}},
                               .count = 5000};
  const auto three_calls = [&](std::uint64_t seed) {
    Communicators ranks = make_ranks(3);
    std::vector<Floats> outputs;
    for (int call = 0; call < 3; ++call) {
      Buffers buffers = buffers_of(test_case, 4);
      buffers.residuals.clear();
      run(ranks, test_case, at_random("int8", seed), buffers);
      outputs.push_back(buffers.outputs[0]);
    }
    return outputs;
  };
  const std::vector<Floats> first = three_calls(7);
  EXPECT_EQ(three_calls(7), first);
  EXPECT_NE(three_calls(8)[0], first[0]);
  EXPECT_NE(first[1], first[0]);  // Each call draws new numbers.
}

constexpr float kLargest = 4.5F;  // Always has the top code as the largest element of its block, so it has no error.

// Mean square errors over many calls in which four ranks pass the same input: of each result, and of the average result
// of each element.
struct Errors {
  double each = 0;
  double of_means = 0;
};

Errors errors_of(Collective collective, const char* algorithm, int calls, std::uint64_t seed) {
  constexpr Rank kRanks = 4;
  Communicators ranks = make_ranks(kRanks);
  FeedbackCase test_case{.problem = {.collective = collective, .ranks = kRanks, .root = 0, .groups = {}}, .count = 640};
  Buffers buffers = buffers_of(test_case, 5);
  buffers.residuals.clear();
  for (Floats& input : buffers.inputs) {
    input = buffers.inputs[0];
    for (std::size_t i = 0; i < input.size(); i += 32) input[i] = kLargest;
  }
  std::vector<double> sums(test_case.count, 0);
  Errors errors;
  for (int call = 0; call < calls; ++call) {
    run(ranks, test_case, at_random("int4", seed, algorithm), buffers);
    for (std::size_t i = 0; i < test_case.count; ++i) {
      const double exact = static_cast<double>(kRanks) * buffers.inputs[0][i];
      const double error = i % 32 == 0 ? 0 : buffers.outputs[0][i] - exact;
      sums[i] += error;
      errors.each += error * error;
    }
  }
  const double elements = static_cast<double>(test_case.count) * 31 / 32;
  errors.each /= elements * calls;
  for (const double sum : sums) errors.of_means += sum / calls * sum / calls / elements;
  return errors;
}

// Between two codes, the average variance f (1 - f) is 1/6 of a squared step. A sum that is not encoded again has three
// times this variance, since ranks draw different numbers for the same input. A sum that is encoded again has steps
// four times as large, and so 16 times this variance.
TEST(StochasticRounding, IsUnbiased) {
  constexpr int kCalls = 300;
  constexpr std::uint64_t kSeed = 9;
  const double variance = kLargest / 7 * kLargest / 7 / 6;
  const Errors scattered = errors_of(Collective::reduce_scatter, "direct", kCalls, kSeed);
  EXPECT_NEAR(scattered.each / (3 * variance), 1, 0.1) << "seed " << kSeed;
  EXPECT_NEAR(scattered.of_means / (scattered.each / kCalls), 1, 0.3) << "seed " << kSeed;
  const Errors reduced = errors_of(Collective::all_reduce, "two_shot", kCalls, kSeed);
  EXPECT_NEAR(reduced.each / (16 * variance), 1, 0.1) << "seed " << kSeed;
  EXPECT_NEAR(reduced.of_means / (reduced.each / kCalls), 1, 0.3) << "seed " << kSeed;
}

TEST(StochasticRounding, ReportsItsError) {
  Communicators ranks = make_ranks(2);
  const FeedbackCase test_case{.problem = {.collective = Collective::all_reduce, .ranks = 2, .groups = {}},
                               .count = 1000};
  Buffers buffers = buffers_of(test_case, 6);
  buffers.residuals.clear();
  run(ranks, test_case, sending("int8", ""), buffers);
  const double nearest = ranks[0]->last_run().error;
  run(ranks, test_case, at_random("int8", 1), buffers);
  EXPECT_NEAR(ranks[0]->last_run().error / nearest, std::sqrt(2.0), 0.02);
}

}  // namespace
}  // namespace tutti::test
