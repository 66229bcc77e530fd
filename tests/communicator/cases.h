// Collective calls of a rank, with a check of the results.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/communicator/ranks.h"

namespace tutti::test {

inline constexpr float kUntouched = -12345;

// Element `index` of a rank's input: a small integer, so that sums are exact. Differs for adjacent ranks, elements and
// blocks.
inline float element(Rank rank, std::size_t index) {
  return static_cast<float>((rank * 7 + index * 3 + index / 5) % 61);
}

struct Case {
  Problem problem;
  std::size_t count;
};

inline Case case_of(Collective collective, Rank ranks, std::size_t count) {
  Case made;
  made.count = count;
  made.problem.collective = collective;
  made.problem.ranks = ranks;
  made.problem.root = has_root(collective) ? ranks - 1 : 0;
  return made;
}

// Returns algorithm and protocol of the last call, such as "ring Simple", or "direct_mapped " without messages.
inline std::string way_of(const Communicator& communicator) {
  const LastRun ran = communicator.last_run();
  return std::string(ran.algorithm) + " " + ran.protocol;
}

inline std::vector<float> input_of(const Case& test, Rank rank) {
  std::vector<float> input(input_blocks(test.problem, rank) * test.count);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = element(rank, i);
  return input;
}

inline float expected(const Case& test, Rank rank, std::size_t index) {
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

// Runs the case on one rank. Sets `wrong` to the index of the first wrong element, to -1 if the result is correct, or
// to -2 if the call changed its input.
inline Status run_case(Communicator& communicator, Case test, const CommunicatorOptions& options, std::int64_t& wrong) {
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

}  // namespace tutti::test
