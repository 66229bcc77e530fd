// What ranks pass to operations in tests, and what has to come of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "src/executor/program.h"
#include "tests/executor/voyage.h"

namespace tutti {

using Number = std::uint64_t;

inline Number contribution(std::uint32_t operation, Rank rank, std::uint64_t element) {
  return (operation * 7919 + (rank + 1) * 104729 + element * 31) * 2654435761U % 1000003;
}

// What element `i` of the rank's output must be.
inline Number expected(const Problem& problem, const Voyage& voyage, std::uint32_t operation, Rank rank,
                       std::uint64_t i) {
  const std::uint64_t own = rank * voyage.count + i;
  const std::uint64_t block = i / voyage.count;
  const std::uint64_t rest = i % voyage.count;
  switch (problem.collective) {
    case Collective::all_gather:
    case Collective::gather: return contribution(operation, static_cast<Rank>(block), rest);
    case Collective::broadcast: return contribution(operation, problem.root, i);
    case Collective::scatter: return contribution(operation, problem.root, own);
    case Collective::all_to_all: return contribution(operation, static_cast<Rank>(block), rank * voyage.count + rest);
    default: break;
  }
  Number sum = 0;
  for (Rank other = 0; other < problem.ranks; ++other) {
    sum += contribution(operation, other, problem.collective == Collective::reduce_scatter ? own : i);
  }
  return voyage.averages ? sum / problem.ranks : sum;
}

// What a rank passes to one operation.
struct Cargo {
  std::pmr::vector<Number> first, second;  // In place there is only the first.
  Number* input = nullptr;
  Number* output = nullptr;
  std::uint64_t inputs = 0, outputs = 0;
  std::uint32_t number = 0;  // Of the operation that they are for.

  Cargo(const Problem& problem, Rank rank, std::uint64_t count, std::uint32_t operation,
        std::pmr::memory_resource* memory)
      : first(memory),
        second(memory),
        inputs(input_blocks(problem, rank) * count),
        outputs(output_blocks(problem, rank) * count) {
    const std::int64_t shift = in_place_shift(problem, rank) * static_cast<std::int64_t>(count);
    const bool one = problem.in_place && inputs > 0 && outputs > 0;
    first.assign(one ? std::max(inputs, outputs) : inputs, ~Number{0});
    second.assign(one ? 0 : outputs, ~Number{0});
    input = first.data() + (one && shift > 0 ? shift : 0);
    output = one ? input - shift : second.data();
    load(rank, operation);
  }

  // The input of that operation, and an output that nobody has written.
  void load(Rank rank, std::uint32_t operation) {
    number = operation;
    std::fill(first.begin(), first.end(), ~Number{0});
    std::fill(second.begin(), second.end(), ~Number{0});
    for (std::uint64_t i = 0; i < inputs; ++i) input[i] = contribution(operation, rank, i);
  }
  RankBuffers buffers() const { return {reinterpret_cast<std::byte*>(input), reinterpret_cast<std::byte*>(output)}; }
};

}  // namespace tutti
