// Error feedback and stochastic rounding of calls in wire formats: nothing that rounding takes is lost, and random
// numbers are the same in every run.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "algorithms/catalogue.h"
#include "tests/communicator/ranks.h"

namespace tutti {
namespace {

using Floats = std::vector<float>;

CommunicatorOptions sending(const std::string& wire, const std::string& algorithm, AskedRounding rounding = {}) {
  CommunicatorOptions options;
  options.timeout_ms = 60'000;
  options.wire = wire;
  options.algorithm = algorithm;
  options.wire_rounding = rounding;
  options.force();
  return options;
}

struct Trial {
  Problem problem;
  std::size_t count = 0;
  Reduction reduction = Reduction::sum;
  bool in_place = false;
};

// What ranks keep between calls.
struct Buffers {
  std::vector<Floats> inputs, outputs, residuals;  // By rank.
};

Buffers buffers_of(const Trial& trial, unsigned seed) {
  Buffers buffers;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (Rank rank = 0; rank < trial.problem.ranks; ++rank) {
    const std::size_t inputs = input_blocks(trial.problem, rank) * trial.count;
    buffers.inputs.emplace_back(inputs);
    for (float& value : buffers.inputs.back()) value = normal(random);
    buffers.outputs.emplace_back(output_blocks(trial.problem, rank) * trial.count, NAN);
    buffers.residuals.emplace_back(inputs);
    for (float& value : buffers.residuals.back()) value = 0.01F * normal(random);
  }
  return buffers;
}

// Calls with copies of the inputs, which some calls overwrite.
void run(Communicators& ranks, const Trial& trial, const CommunicatorOptions& options, Buffers& buffers) {
  std::vector<Floats> passed = buffers.inputs;
  const auto statuses = on_all(ranks, [&](Communicator& communicator) {
    const Rank rank = communicator.rank();
    const bool has_output = !buffers.outputs[rank].empty();
    const bool own_block = trial.problem.collective == Collective::reduce_scatter;
    float* const place = passed[rank].data() + (own_block ? rank * trial.count : 0);
    Call call;
    call.collective = trial.problem.collective;
    call.reduction = trial.reduction;
    call.root = trial.problem.root;
    call.count = trial.count;
    call.input = reinterpret_cast<const std::byte*>(passed[rank].data());
    call.output = reinterpret_cast<std::byte*>(trial.in_place ? place : buffers.outputs[rank].data());
    if (!buffers.residuals.empty()) call.residual = buffers.residuals[rank].data();
    Status status = communicator.run(call, &options);
    if (trial.in_place && has_output) std::copy_n(place, trial.count, buffers.outputs[rank].begin());
    return status;
  });
  for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
  for (Rank rank = 0; rank < ranks.size(); ++rank) {
    const bool overwritten = trial.in_place && !buffers.outputs[rank].empty();
    if (!overwritten) {
      ASSERT_EQ(passed[rank], buffers.inputs[rank]) << "rank " << rank << "'s input is not the library's";
    }
  }
}

// What all ranks have given, with the residuals before and without those after, is what came out.
void expect_nothing_lost(const Trial& trial, const Buffers& before, const Buffers& after) {
  double moved = 0;
  for (Rank rank = 0; rank < trial.problem.ranks; ++rank) {
    const bool scattered = trial.problem.collective == Collective::reduce_scatter;
    for (std::size_t i = 0; i < after.outputs[rank].size(); ++i) {
      const std::size_t at = i + (scattered ? rank * trial.count : 0);
      double given = 0;
      for (Rank peer = 0; peer < trial.problem.ranks; ++peer) {
        given += static_cast<double>(before.inputs[peer][at]) + before.residuals[peer][at] - after.residuals[peer][at];
        moved += std::abs(before.residuals[peer][at] - after.residuals[peer][at]);
      }
      if (trial.reduction == Reduction::avg) given /= trial.problem.ranks;
      ASSERT_NEAR(after.outputs[rank][i], given, 2e-5) << "rank " << rank << ", element " << i;
    }
  }
  ASSERT_GT(moved, 0);
}

void expect_nothing_lost_by_any_algorithm(Communicators& ranks, const std::vector<std::vector<Rank>>& groups) {
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::reduce}) {
    const auto n = static_cast<Rank>(ranks.size());
    Trial trial{.problem = {.collective = collective, .ranks = n, .root = 0, .groups = {}}};
    trial.problem.root = collective == Collective::reduce ? n / 2 : 0;
    Problem grouped = trial.problem;
    grouped.groups = groups;
    for (const Algorithm* algorithm : catalogue(collective)) {
      const bool mapped = std::string_view(algorithm->name()).ends_with("_mapped");
      if (mapped || !algorithm->supports(grouped) || !algorithm->bears_rounding(grouped)) continue;
      unsigned seed = 0;
      for (const char* wire : {"int8", "int4", "fp8_e4m3"}) {
        for (trial.count = 100; trial.count <= 40'001; trial.count = trial.count * 20 + 1) {
          ++seed;
          trial.reduction = seed % 2 == 0 ? Reduction::sum : Reduction::avg;
          trial.in_place = seed % 3 == 0;
          const auto rounding = seed % 4 == 0 ? Rounding::stochastic : Rounding::nearest;
          SCOPED_TRACE(describe(trial.problem) + " by " + algorithm->name() + ", " + wire + " of " +
                       std::to_string(trial.count) + ", seed " + std::to_string(seed));
          const Buffers before = buffers_of(trial, seed);
          Buffers after = before;
          ASSERT_NO_FATAL_FAILURE(run(ranks, trial, sending(wire, algorithm->name(), {rounding, 5}), after));
          ASSERT_STREQ(ranks[0]->last_run().wire, wire);
          ASSERT_NO_FATAL_FAILURE(expect_nothing_lost(trial, before, after));
        }
      }
    }
  }
}

class Feedback : public testing::TestWithParam<Rank> {};

TEST_P(Feedback, LosesNothingByAnyAlgorithm) {
  Communicators ranks = make_ranks(GetParam());
  expect_nothing_lost_by_any_algorithm(ranks, {});
}

INSTANTIATE_TEST_SUITE_P(Ranks, Feedback, testing::Values(2, 3, 4, 5));

TEST(FeedbackOverHosts, LosesNothingByAnyAlgorithm) {
  CommunicatorOptions patient;
  patient.timeout_ms = 60'000;
  Communicators ranks = std::move(Communicator::create_all(Hosts(std::vector<Rank>{0, 0, 1, 1}), patient)).value();
  expect_nothing_lost_by_any_algorithm(ranks, {{2, 2}});
}

}  // namespace
}  // namespace tutti
