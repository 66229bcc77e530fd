// Calls that set a bound on the relative error instead of a compression format.
#include <gtest/gtest.h>

#include "tests/base/case_sampling.h"
#include "tests/communicator/compressed_calls.h"

namespace tutti::test {
namespace {

CommunicatorOptions bounded(double max_relative_error) {
  CommunicatorOptions options = sending("");
  options.max_relative_error = max_relative_error;
  options.update_agreement_hash();
  return options;
}

// Creates ranks on one host each. The links between them are assumed to be slower than encoding.
Communicators make_distant_ranks(Rank count) {
  CommunicatorOptions patient;
  patient.timeout_ms = 60'000;
  return std::move(Communicator::create_all(Hosts::one_rank_per_host(count), patient)).value();
}

TEST(CompressionErrorBound, Holds_ForGaussianValues) {
  OneOf cases(4);
  for (const Rank count : {2U, 3U, 4U}) {
    Communicators ranks = make_distant_ranks(count);
    for (const double bound : {0.0001, 0.0025, 0.0101, 0.05, 0.3}) {
      for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
        if (!cases.takes()) continue;
        const Problem problem{.collective = collective, .ranks = count, .groups = {}};
        SCOPED_TRACE(describe(problem) + " " + std::to_string(bound));
        const Outcome outcome = run(ranks, problem, 300'001, bounded(bound));
        for (const Status& status : outcome.statuses) ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(std::string_view(outcome.ran.compression) == "raw", bound == 0.0001) << outcome.ran.compression;
        EXPECT_LE(outcome.ran.error, bound);
        EXPECT_LE(error_of(outcome, problem, 300'001), bound);
        if (collective != Collective::reduce_scatter) {
          for (const auto& output : outcome.outputs) ASSERT_EQ(output, outcome.outputs[0]);
        }
      }
    }
  }
}

TEST(CompressionErrorBound, LeavesSharedMemoryUncompressed) {
  Communicators ranks = make_ranks(2);
  for (const std::size_t count : {100, 1 << 20}) {
    const Outcome outcome =
        run(ranks, {.collective = Collective::all_reduce, .ranks = 2, .groups = {}}, count, bounded(0.1));
    for (const Status& status : outcome.statuses) ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_STREQ(outcome.ran.compression, "raw");
    EXPECT_EQ(outcome.ran.error, 0);
  }
}

// The bound is computed for sums. Calls with other reductions must not be compressed, except for averages.
TEST(CompressionErrorBound, AppliesToSumsOnly) {
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
    EXPECT_EQ(std::string_view(ranks[0]->last_run().compression) == "raw", reduction != Reduction::avg)
        << name(reduction);
  }
}

// Autotuning is on, but must not change the format: all calls have the same result bits.
TEST(CompressionErrorBound, IsNotAutotuned) {
  Communicators ranks = make_distant_ranks(2);
  CommunicatorOptions options = bounded(0.05);
  options.tune = Tune::all;
  options.update_agreement_hash();
  const Problem problem{.collective = Collective::all_reduce, .ranks = 2, .groups = {}};
  const Outcome first = run(ranks, problem, 100'000, options);
  ASSERT_STRNE(first.ran.compression, "raw");
  for (int call = 0; call < 60; ++call) {
    const Outcome next = run(ranks, problem, 100'000, options);
    ASSERT_TRUE(next.statuses[0].ok()) << next.statuses[0].message();
    ASSERT_EQ(next.outputs[0], first.outputs[0]) << call;
  }
}

TEST(CompressionErrorBound, MustMatchOnAllRanks) {
  expect_disagreement(bounded(0.01), bounded(0.011), "TUTTI_MAX_RELATIVE_ERROR");
  expect_disagreement(bounded(0.01), sending("int8"), "within a bound on the error");
}

}  // namespace
}  // namespace tutti::test
