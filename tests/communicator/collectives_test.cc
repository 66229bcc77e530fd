// Every algorithm of the catalogue, run between ranks, against sums worked out by hand.
#include <gtest/gtest.h>

#include <numeric>

#include "algorithms/catalogue.h"
#include "tests/communicator/ranks.h"

namespace tutti {
namespace {

constexpr float kUntouched = -12345;

// Small integers, so that sums are exact, and no two neighbours, ranks or blocks alike.
float element(Rank rank, std::size_t index) { return static_cast<float>((rank * 7 + index * 3 + index / 5) % 61); }

struct Case {
  Problem problem;
  std::size_t count;
};

std::vector<float> input_of(const Case& test, Rank rank) {
  std::vector<float> input(input_blocks(test.problem, rank) * test.count);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = element(rank, i);
  return input;
}

float expected(const Case& test, Rank rank, std::size_t index) {
  const Problem& problem = test.problem;
  const Rank block = static_cast<Rank>(index / test.count);
  const std::size_t within = index % test.count;
  float sum = 0;
  switch (problem.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      for (Rank r = 0; r < problem.ranks; ++r) sum += element(r, index);
      return sum;
    case Collective::reduce_scatter:
      for (Rank r = 0; r < problem.ranks; ++r) sum += element(r, rank * test.count + index);
      return sum;
    case Collective::all_gather:
    case Collective::gather: return element(block, within);
    case Collective::all_to_all: return element(block, rank * test.count + within);
    case Collective::broadcast: return element(problem.root, index);
    case Collective::scatter: return element(problem.root, rank * test.count + index);
  }
  return 0;
}

// Runs the case on one rank, in place or not; the first wrong element, or -1.
Status run_case(Communicator& communicator, Case test, const CommunicatorOptions& options, std::int64_t& wrong) {
  const Rank rank = communicator.rank();
  const bool both = input_blocks(test.problem, rank) > 0 && output_blocks(test.problem, rank) > 0;
  const std::vector<float> original = input_of(test, rank);
  std::vector<float> input = original;
  std::vector<float> output(output_blocks(test.problem, rank) * test.count, kUntouched);
  Call call;
  call.collective = test.problem.collective;
  call.root = test.problem.root;
  call.count = test.count;
  float* in = input.data();
  float* out = output.data();
  if (test.problem.in_place && both) {
    const std::int64_t shift = in_place_shift(test.problem, rank) * static_cast<std::int64_t>(test.count);
    if (output.size() >= input.size()) {
      std::copy(input.begin(), input.end(), output.begin() + shift);
      in = out + shift;
    } else {
      out = in - shift;
    }
  }
  call.input = reinterpret_cast<const std::byte*>(in);
  call.output = reinterpret_cast<std::byte*>(out);
  TUTTI_CHECK_OK(communicator.run(call, &options));
  wrong = -1;
  for (std::size_t i = 0; i < output.size() && wrong < 0; ++i) {
    if (out[i] != expected(test, rank, i)) wrong = static_cast<std::int64_t>(i);
  }
  const bool overwritten = test.problem.in_place && both;
  if (!overwritten && input != original) wrong = -2;
  return {};
}

class Collectives : public testing::TestWithParam<Rank> {};

TEST_P(Collectives, AreRightByEveryAlgorithm) {
  Communicators ranks = make_ranks(GetParam());
  for (std::uint32_t c = 0; c < kCollectives; ++c) {
    Problem problem;
    problem.collective = static_cast<Collective>(c);
    problem.ranks = GetParam();
    problem.root = has_root(problem.collective) ? GetParam() / 2 : 0;
    for (const Algorithm* algorithm : catalogue(problem.collective)) {
      if (!algorithm->supports(problem)) continue;
      for (const std::size_t count : {1, 3, 17, 100, 1000, 5000, 70'001}) {
        for (const bool in_place : {false, true}) {
          problem.in_place = in_place;
          const bool refused =
              in_place && std::string_view(algorithm->name()).ends_with("_mapped") && !algorithm->supports(problem);
          CommunicatorOptions options;
          options.algorithm = algorithm->name();
          options.force();
          std::vector<std::int64_t> wrong(ranks.size(), -3);
          const auto statuses = on_all(ranks, [&](Communicator& communicator) {
            return run_case(communicator, {problem, count}, options, wrong[communicator.rank()]);
          });
          for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
            if (refused) {  // Nor has it any effect: the calls after it go on.
              ASSERT_EQ(statuses[rank].code(), Code::invalid_argument) << algorithm->name() << " " << describe(problem);
              continue;
            }
            ASSERT_TRUE(statuses[rank].ok())
                << algorithm->name() << " " << describe(problem) << ": " << statuses[rank].message();
            ASSERT_EQ(wrong[rank], -1) << algorithm->name() << " " << describe(problem) << " count " << count
                                       << " rank " << rank;
          }
          problem.in_place = false;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, testing::Values(1, 2, 3, 4, 5, 8));

// The tuner's own choices, lanes and mapped memory in turn, with sizes that change at each call.
TEST(Collectives, StayInStepOverManyCalls) {
  Communicators ranks = make_ranks(3);
  const auto statuses = on_all(ranks, [](Communicator& communicator) -> Status {
    for (int i = 0; i < 400; ++i) {
      Case test{{.collective = static_cast<Collective>(i % kCollectives),
                 .ranks = 3,
                 .root = 0,
                 .in_place = i % 3 == 0,
                 .groups = {}},
                static_cast<std::size_t>(1) << (i * 5 % 17)};
      if (has_root(test.problem.collective)) test.problem.root = i % 3;
      std::int64_t wrong = 0;
      TUTTI_CHECK_OK(run_case(communicator, test, communicator.options(), wrong));
      if (wrong != -1) return internal_error("call " + std::to_string(i) + " is wrong at " + std::to_string(wrong));
    }
    return {};
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace tutti
