// Buffers of ranks in test calls, and their expected contents.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "src/executor/program.h"
#include "tests/executor/elements.h"
#include "tests/executor/test_call.h"

namespace tutti::test {

using Number = std::uint64_t;

inline Number contribution(std::uint32_t operation, Rank rank, std::uint64_t element) {
  return (operation * 7919 + (rank + 1) * 104729 + element * 31) * 2654435761U % 1000003;
}

// Returns the expected element `i` of the rank's output.
inline Number expected(const Problem& problem, const TestCall& test_call, std::uint32_t operation, Rank rank,
                       std::uint64_t i) {
  const std::uint64_t own = rank * test_call.count + i;
  const std::uint64_t block = i / test_call.count;
  const std::uint64_t rest = i % test_call.count;
  switch (problem.collective) {
    case Collective::all_gather:
    case Collective::gather: return contribution(operation, static_cast<Rank>(block), rest);
    case Collective::broadcast: return contribution(operation, problem.root, i);
    case Collective::scatter: return contribution(operation, problem.root, own);
    case Collective::all_to_all:
      return contribution(operation, static_cast<Rank>(block), rank * test_call.count + rest);
    default: break;
  }
  Number sum = 0;
  for (Rank other = 0; other < problem.ranks; ++other) {
    sum += contribution(operation, other, problem.collective == Collective::reduce_scatter ? own : i);
  }
  return test_call.averages ? sum / problem.ranks : sum;
}

// Buffers of a rank for one operation.
struct TestBuffers {
  std::pmr::vector<Number> first, second;  // Each has guard bytes at its end. In place, `second` is empty.
  std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::uint64_t inputs = 0, outputs = 0;  // Numbers of elements.
  std::uint32_t number = 0;               // Operation whose input is loaded.

  TestBuffers(const Problem& problem, Rank rank, const TestCall& test_call, std::uint32_t operation,
              std::pmr::memory_resource* memory)
      : first(memory),
        second(memory),
        inputs(input_blocks(problem, rank) * test_call.count),
        outputs(output_blocks(problem, rank) * test_call.count),
        test_call_(test_call),
        operation_(operation) {
    const std::int64_t shift =
        in_place_shift(problem, rank) * static_cast<std::int64_t>(test_call.count * test_call.element_bytes);
    const bool one = problem.in_place && inputs > 0 && outputs > 0;
    first.resize(numbers(one ? std::max(inputs, outputs) : inputs));
    second.resize(numbers(one ? 0 : outputs));
    input = reinterpret_cast<std::byte*>(first.data()) + (one && shift > 0 ? shift : 0);
    output = one ? input - shift : reinterpret_cast<std::byte*>(second.data());
    load(rank, operation);
  }

  // Writes the input of the operation, and clears the output.
  void load(Rank rank, std::uint32_t operation) {
    number = operation;
    std::fill(first.begin(), first.end(), ~Number{0});
    std::fill(second.begin(), second.end(), ~Number{0});
    if (!test_call_.tasks.empty()) {
      const std::uint64_t seed = (std::uint64_t{operation} << 40) + (std::uint64_t{rank} << 32);
      return fill_elements(test_call_.tasks[operation_].type, input, inputs, seed);
    }
    for (std::uint64_t i = 0; i < inputs; ++i) reinterpret_cast<Number*>(input)[i] = contribution(operation, rank, i);
  }
  RankBuffers buffers() const { return {input, output}; }
  Number input_number(std::uint64_t i) const { return reinterpret_cast<const Number*>(input)[i]; }
  Number output_number(std::uint64_t i) const { return reinterpret_cast<const Number*>(output)[i]; }

 private:
  std::size_t numbers(std::uint64_t elements) const {
    constexpr std::size_t kGuards = 2;
    return (elements * test_call_.element_bytes + sizeof(Number) - 1) / sizeof(Number) + kGuards;
  }

  const TestCall& test_call_;
  std::uint32_t operation_;  // Operation of the test call.
};

}  // namespace tutti::test
