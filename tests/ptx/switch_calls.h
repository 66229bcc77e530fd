// Calls for switches and copy engines of devices of the stand-in, with their inputs and results.
#pragma once

#include <cstring>
#include <vector>

#include "src/base/numeric.h"
#include "tests/ptx/thread_per_device.h"

namespace tutti::test {

// A call of a rank, with small integers as elements, whose sums are exact in all types.
struct SwitchCall {
  DataType type = DataType::float32;
  Reduction reduction = Reduction::sum;
  std::uint64_t count = 0;
  bool by_nccl = false;  // NCCL_ALGO requests the algorithm.
  Collective collective = Collective::all_reduce;
  std::uint32_t skipped = 0;   // Elements of memory before each buffer, which then begins within a pack.
  std::uint32_t channels = 0;  // 0: chosen.
};

inline std::uint32_t term(Rank rank, std::uint64_t i) {
  return static_cast<std::uint32_t>((rank * 5 + i * 3 + i / 7) % 9);
}

inline void put(DataType type, std::byte* at, double value) {
  const auto store = [&](auto bits) { std::memcpy(at, &bits, sizeof bits); };
  switch (type) {
    case DataType::float16:
      return store(static_cast<std::uint16_t>(narrow<Float16, std::uint32_t>(static_cast<float>(value))));
    case DataType::bfloat16:
      return store(static_cast<std::uint16_t>(narrow<BFloat16, std::uint32_t>(static_cast<float>(value))));
    case DataType::float64: return store(value);
    case DataType::int32: return store(static_cast<std::int32_t>(value));
    case DataType::uint8: return store(static_cast<std::uint8_t>(value));
    default: return store(static_cast<float>(value));
  }
}

// Element i of the output of a rank.
inline double result(const SwitchCall& shape, const Problem& problem, Rank rank, std::uint64_t i) {
  if (shape.collective == Collective::all_gather) return term(static_cast<Rank>(i / shape.count), i % shape.count);
  if (shape.collective == Collective::all_to_all)
    return term(static_cast<Rank>(i / shape.count), rank * shape.count + i % shape.count);
  if (shape.collective == Collective::broadcast) return term(problem.root, i);
  const std::uint64_t first = shape.collective == Collective::reduce_scatter ? rank * shape.count : 0;
  double sum = 0;
  for (Rank each = 0; each < problem.ranks; ++each) sum += term(each, first + i);
  return shape.reduction == Reduction::avg ? sum / problem.ranks : sum;
}

// Input of a rank and its output.
struct CallData {
  std::vector<std::byte> input, output;

  CallData(const SwitchCall& shape, Rank rank, Rank ranks) {
    Problem problem{.collective = shape.collective, .ranks = ranks, .groups = {}};
    const std::size_t size = size_of(shape.type);
    input.resize(input_blocks(problem, rank) * shape.count * size);
    output.resize(output_blocks(problem, rank) * shape.count * size);
    for (std::uint64_t i = 0; i < input.size() / size; ++i) put(shape.type, input.data() + i * size, term(rank, i));
    for (std::uint64_t i = 0; i < output.size() / size; ++i)
      put(shape.type, output.data() + i * size, result(shape, problem, rank, i));
  }
};

}  // namespace tutti::test
