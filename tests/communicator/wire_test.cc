// Calls whose messages are narrower than their elements: all ranks end with the same bits, and as near to what is right
// as the library says.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "algorithms/catalogue.h"
#include "src/wire/format.h"
#include "tests/communicator/ranks.h"

namespace tutti {
namespace {

CommunicatorOptions sending(const std::string& wire, const std::string& algorithm = "") {
  CommunicatorOptions options;
  options.timeout_ms = 60'000;
  options.wire = wire;
  options.algorithm = algorithm;
  options.force();
  return options;
}

struct Outcome {
  std::vector<std::vector<float>> inputs, outputs;  // By rank.
  std::vector<Status> statuses;
  Ran ran;
};

std::uint64_t blocks(const Problem& problem, Rank rank, bool output) {
  return output ? output_blocks(problem, rank) : input_blocks(problem, rank);
}

Outcome run(Communicators& ranks, const Problem& problem, std::size_t count, const CommunicatorOptions& options) {
  Outcome outcome;
  std::mt19937 random(static_cast<unsigned>(count));
  std::normal_distribution<float> normal;
  for (Rank rank = 0; rank < ranks.size(); ++rank) {
    outcome.inputs.emplace_back(blocks(problem, rank, false) * count);
    for (float& value : outcome.inputs.back()) value = normal(random);
    outcome.outputs.emplace_back(blocks(problem, rank, true) * count, NAN);
  }
  outcome.statuses = on_all(ranks, [&](Communicator& communicator) {
    const Rank rank = communicator.rank();
    Call call;
    call.collective = problem.collective;
    call.root = problem.root;
    call.count = count;
    call.input = reinterpret_cast<const std::byte*>(outcome.inputs[rank].data());
    call.output = reinterpret_cast<std::byte*>(outcome.outputs[rank].data());
    return communicator.run(call, &options);
  });
  outcome.ran = ranks[0]->last_run();
  return outcome;
}

// What element i of a rank's output should be.
double right(const Outcome& outcome, const Problem& problem, std::size_t count, Rank rank, std::size_t i) {
  const std::size_t block = i / count, at = i % count;
  double sum = 0;
  switch (problem.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      for (const auto& input : outcome.inputs) sum += input[i];
      return sum;
    case Collective::reduce_scatter:
      for (const auto& input : outcome.inputs) sum += input[rank * count + at];
      return sum;
    case Collective::all_gather:
    case Collective::gather: return outcome.inputs[block][at];
    case Collective::broadcast: return outcome.inputs[problem.root][at];
    case Collective::scatter: return outcome.inputs[problem.root][rank * count + at];
    case Collective::all_to_all: return outcome.inputs[block][rank * count + at];
  }
  return 0;
}

double error_of(const Outcome& outcome, const Problem& problem, std::size_t count) {
  double errors = 0, results = 0;
  for (Rank rank = 0; rank < problem.ranks; ++rank) {
    for (std::size_t i = 0; i < outcome.outputs[rank].size(); ++i) {
      const double exact = right(outcome, problem, count, rank, i);
      const double error = outcome.outputs[rank][i] - exact;
      errors += error * error;
      results += exact * exact;
    }
  }
  return std::sqrt(errors / results);
}

class Wire : public testing::TestWithParam<Rank> {};

TEST_P(Wire, IsAsExactAsItSaysAndTheSameOnAllRanks) {
  Communicators ranks = make_ranks(GetParam());
  for (std::uint32_t c = 0; c < kCollectives; ++c) {
    Problem problem;
    problem.collective = static_cast<Collective>(c);
    problem.ranks = GetParam();
    problem.root = has_root(problem.collective) ? GetParam() / 2 : 0;
    for (const Algorithm* algorithm : catalogue(problem.collective)) {
      const bool mapped = std::string_view(algorithm->name()).ends_with("_mapped");
      if (mapped || !algorithm->supports(problem) || !algorithm->bears_rounding(problem)) continue;
      for (const char* wire : {"bf16", "int8", "int8_b32", "fp8_e4m3", "int4"}) {
        for (const std::size_t count : {100, 130, 5000, 70'001}) {  // Groups of 128: within one, and with a rest.
          SCOPED_TRACE(describe(problem) + " by " + algorithm->name() + ", " + wire + " " + std::to_string(count));
          const Outcome outcome = run(ranks, problem, count, sending(wire, algorithm->name()));
          for (const Status& status : outcome.statuses) ASSERT_TRUE(status.ok()) << status.message();
          ASSERT_STREQ(outcome.ran.wire, wire);
          const bool all_alike = keeps_of(problem.collective) != Keeps::nothing;
          for (const auto& output : outcome.outputs) {
            if (all_alike) {
              ASSERT_EQ(std::memcmp(output.data(), outcome.outputs[0].data(), output.size() * sizeof(float)), 0);
            }
          }
          const double error = error_of(outcome, problem, count);
          ASSERT_LE(error, (count < 5000 ? 2 : 1.15) * outcome.ran.error);
          const bool all_travel = all_alike && count >= 5000 && GetParam() > 1;
          if (all_travel) {
            ASSERT_GE(error, 0.8 * outcome.ran.error);  // It did travel so, and no claim is idle.
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Wire, testing::Values(2, 3, 4, 5));

// Buffers end where the elements do, which AddressSanitizer holds calls to.
TEST_P(Wire, TakesElementsOf16BitsInPlace) {
  Communicators ranks = make_ranks(GetParam());
  for (const DataType type : {DataType::float16, DataType::bfloat16}) {
    for (const Reduction reduction : {Reduction::sum, Reduction::avg}) {
      for (const char* wire : {"int8", "int4", "fp8_e5m2"}) {
        for (const std::size_t count : {1, 100, 1000, 5001}) {
          SCOPED_TRACE(std::string(name(type)) + " " + wire + " " + std::to_string(count));
          const std::uint16_t one = type == DataType::float16 ? 0x3c00 : 0x3f80;
          std::vector<std::vector<std::uint16_t>> values(ranks.size(), std::vector<std::uint16_t>(count, one));
          const CommunicatorOptions options = sending(wire);
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
          // A block of equal numbers is its largest code, so the mean of ones is one but for the rounding of scales.
          const int off = static_cast<int>(values[0][count - 1]) - one;
          if (reduction == Reduction::avg) {
            ASSERT_LE(std::abs(off), type == DataType::float16 ? 16 : 2);
          }
        }
      }
    }
  }
}

TEST(WireOptions, KeepRanksOfSeveralHostsAlike) {
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

TEST(WireOptions, MeanNothingToOneRank) {
  Communicators alone = make_ranks(1);
  std::vector<float> values = {0.5F, 0.3F, 1.0F};
  const CommunicatorOptions options = sending("int4");
  Call call;
  call.count = values.size();
  call.output = reinterpret_cast<std::byte*>(values.data());
  call.input = call.output;
  EXPECT_TRUE(alone[0]->run(call, &options).ok());
  EXPECT_EQ(values, (std::vector<float>{0.5F, 0.3F, 1.0F}));
  EXPECT_STREQ(alone[0]->last_run().wire, "raw");
}

TEST(WireOptions, LeaveAloneWhatTheyWouldNotMakeNarrower) {
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
  EXPECT_STREQ(ranks[0]->last_run().wire, "raw");
  EXPECT_EQ(sums, std::vector<std::int32_t>(2000, 246913578));
}

TEST(WireOptions, LeaveAloneBlocksThatFillNoGroup) {
  Communicators ranks = make_ranks(2);
  const Problem problem{.collective = Collective::all_reduce, .ranks = 2, .groups = {}};
  for (const std::size_t count : {1, 32}) {  // A group of int8 has 130 bytes.
    const Outcome outcome = run(ranks, problem, count, sending("int8"));
    for (const Status& status : outcome.statuses) ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_STREQ(outcome.ran.wire, "raw");
  }
  EXPECT_STREQ(run(ranks, problem, 33, sending("int8")).ran.wire, "int8");
}

TEST(WireOptions, RefuseAlgorithmsWhoseRanksWouldDiffer) {
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

CommunicatorOptions bounded(double max_relative_error) {
  CommunicatorOptions options = sending("");
  options.max_relative_error = max_relative_error;
  options.force();
  return options;
}

// Each on a host of its own, with links that are taken to be slower than encoding.
Communicators make_distant_ranks(Rank count) {
  CommunicatorOptions patient;
  patient.timeout_ms = 60'000;
  return std::move(Communicator::create_all(Hosts::apart(count), patient)).value();
}

TEST(WireBounds, AreKeptByGaussianNumbers) {
  for (const Rank count : {2U, 3U, 4U}) {
    Communicators ranks = make_distant_ranks(count);
    for (const double bound : {0.0001, 0.0025, 0.0101, 0.05, 0.3}) {
      for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
        const Problem problem{.collective = collective, .ranks = count, .groups = {}};
        SCOPED_TRACE(describe(problem) + " " + std::to_string(bound));
        const Outcome outcome = run(ranks, problem, 300'001, bounded(bound));
        for (const Status& status : outcome.statuses) ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(std::string_view(outcome.ran.wire) == "raw", bound == 0.0001) << outcome.ran.wire;
        EXPECT_LE(outcome.ran.error, bound);
        EXPECT_LE(error_of(outcome, problem, 300'001), bound);
        if (collective != Collective::reduce_scatter) {
          for (const auto& output : outcome.outputs) ASSERT_EQ(output, outcome.outputs[0]);
        }
      }
    }
  }
}

TEST(WireBounds, LeaveSharedMemoryAlone) {
  Communicators ranks = make_ranks(2);
  for (const std::size_t count : {100, 1 << 20}) {
    const Outcome outcome =
        run(ranks, {.collective = Collective::all_reduce, .ranks = 2, .groups = {}}, count, bounded(0.1));
    for (const Status& status : outcome.statuses) ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_STREQ(outcome.ran.wire, "raw");
    EXPECT_EQ(outcome.ran.error, 0);
  }
}

// The error of a sum says nothing of these.
TEST(WireBounds, AreOfSumsAlone) {
  Communicators ranks = make_distant_ranks(2);
  for (const Reduction reduction : {Reduction::min, Reduction::max, Reduction::prod, Reduction::avg}) {
    std::vector<std::vector<float>> values(2, std::vector<float>(1 << 20, 1.25F));
    const CommunicatorOptions options = bounded(0.05);
    const auto statuses = on_all(ranks, [&](Communicator& communicator) {
      Call call;
      call.reduction = reduction;
      call.count = values[0].size();
      call.output = reinterpret_cast<std::byte*>(values[communicator.rank()].data());
      call.input = call.output;
      return communicator.run(call, &options);
    });
    for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(std::string_view(ranks[0]->last_run().wire) == "raw", reduction != Reduction::avg) << name(reduction);
  }
}

// What calls take has no say in whether they are rounded.
TEST(WireBounds, AreNothingToLearnFrom) {
  Communicators ranks = make_distant_ranks(2);
  CommunicatorOptions options = bounded(0.05);
  options.tune = Tune::all;
  options.force();
  const Problem problem{.collective = Collective::all_reduce, .ranks = 2, .groups = {}};
  const Outcome first = run(ranks, problem, 100'000, options);
  ASSERT_STRNE(first.ran.wire, "raw");
  for (int call = 0; call < 60; ++call) {
    const Outcome next = run(ranks, problem, 100'000, options);
    ASSERT_TRUE(next.statuses[0].ok()) << next.statuses[0].message();
    ASSERT_EQ(next.outputs[0], first.outputs[0]) << call;
  }
}

TEST(WireBounds, AreSharedByAllRanks) {
  Communicators ranks = make_ranks(2);
  std::vector<float> values(2000, 1);
  const auto statuses = on_all(ranks, [&](Communicator& communicator) {
    const CommunicatorOptions options = bounded(communicator.rank() == 0 ? 0.01 : 0.011);
    Call call;
    call.count = 1000;
    call.input = call.output = reinterpret_cast<std::byte*>(values.data() + communicator.rank() * 1000);
    return communicator.run(call, &options);
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::invalid_usage);
    EXPECT_NE(status.message().find("TUTTI_MAX_RELATIVE_ERROR"), std::string::npos) << status.message();
  }
}

TEST(WireOptions, AreSharedByAllRanks) {
  Communicators ranks = make_ranks(2);
  std::vector<float> values(2000, 1);
  const auto statuses = on_all(ranks, [&](Communicator& communicator) {
    const CommunicatorOptions options = sending(communicator.rank() == 0 ? "int8" : "raw");
    Call call;
    call.count = 1000;
    call.input = call.output = reinterpret_cast<std::byte*>(values.data() + communicator.rank() * 1000);
    return communicator.run(call, &options);
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::invalid_usage);
    EXPECT_NE(status.message().find("wire"), std::string::npos) << status.message();
  }
}

struct Sent {
  Carried all;                 // By all ranks together.
  std::vector<Carried> ranks;  // By each.
};

// In one call.
Sent sent_by(Communicators& ranks, const Problem& problem, std::size_t count, const CommunicatorOptions& options) {
  std::vector<WireStatistics> before;
  for (const auto& rank : ranks) before.push_back(rank->wire_statistics());
  const Outcome outcome = run(ranks, problem, count, options);
  for (const Status& status : outcome.statuses) EXPECT_TRUE(status.ok()) << status.message();
  Sent sent;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const WireStatistics after = ranks[rank]->wire_statistics();
    EXPECT_EQ(after.rounded_calls + after.raw_calls, before[rank].rounded_calls + before[rank].raw_calls + 1);
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

TEST(WireStatistics, AreWhatTheAlgorithmSends) {
  Communicators ranks = make_ranks(kSenders);
  constexpr std::size_t kCount = 128 * kSenders * 5;
  for (const char* algorithm : {"ring", "two_shot"}) {
    const Sent sent = sent_by(ranks, among_senders(Collective::all_reduce), kCount, sending("int8", algorithm));
    for (const Carried& carried : sent.ranks) {  // Twice all blocks but one.
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

// Whatever it sends to whom, each rank but one adds its part, and each but one gets the sum.
TEST(WireStatistics, LoseNothingWhereUnitsDiffer) {
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

TEST(WireStatistics, CountCallsThatAreRawAndNoBytesOfThem) {
  Communicators ranks = make_ranks(kSenders);
  for (const char* wire : {"raw", "int8", "raw", "raw"}) {
    const Sent sent = sent_by(ranks, among_senders(Collective::all_reduce), 3000, sending(wire));
    EXPECT_EQ(sent.all.message_bytes > 0, std::string(wire) == "int8");
  }
  sent_by(ranks, among_senders(Collective::all_reduce), 3, sending("int8"));  // A group would be longer.
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->wire_statistics().rounded_calls, 1U);
    EXPECT_EQ(rank->wire_statistics().raw_calls, 4U);
  }
}

}  // namespace
}  // namespace tutti
