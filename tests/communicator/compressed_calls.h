// Compressed calls of ranks of this process, with their inputs, outputs and errors.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "tests/communicator/ranks.h"

namespace tutti::test {

inline CommunicatorOptions sending(const std::string& compression, const std::string& algorithm = "") {
  CommunicatorOptions options;
  options.timeout_ms = 60'000;
  options.compression = compression;
  options.algorithm = algorithm;
  options.update_agreement_hash();
  return options;
}

struct Outcome {
  std::vector<std::vector<float>> inputs, outputs;  // [rank]
  std::vector<Status> statuses;
  LastRun ran;
};

inline std::uint64_t blocks(const Problem& problem, Rank rank, bool output) {
  return output ? output_blocks(problem, rank) : input_blocks(problem, rank);
}

inline Outcome run(Communicators& ranks, const Problem& problem, std::size_t count,
                   const CommunicatorOptions& options) {
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

// Returns the exact value of element i of a rank's output.
inline double exact_value(const Outcome& outcome, const Problem& problem, std::size_t count, Rank rank, std::size_t i) {
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

inline double error_of(const Outcome& outcome, const Problem& problem, std::size_t count) {
  double errors = 0, results = 0;
  for (Rank rank = 0; rank < problem.ranks; ++rank) {
    for (std::size_t i = 0; i < outcome.outputs[rank].size(); ++i) {
      const double exact = exact_value(outcome, problem, count, rank, i);
      const double error = outcome.outputs[rank][i] - exact;
      errors += error * error;
      results += exact * exact;
    }
  }
  return std::sqrt(errors / results);
}

// Expects that calls of two ranks with different options fail on both ranks, with `words` in the error messages.
inline void expect_disagreement(const CommunicatorOptions& first, const CommunicatorOptions& second,
                                const char* words) {
  Communicators ranks = make_ranks(2);
  std::vector<float> values(2000, 1);
  const auto statuses = on_all(ranks, [&](Communicator& communicator) {
    Call call;
    call.count = 1000;
    call.input = call.output = reinterpret_cast<std::byte*>(values.data() + communicator.rank() * 1000);
    return communicator.run(call, communicator.rank() == 0 ? &first : &second);
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::invalid_usage);
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  }
}

}  // namespace tutti::test
