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

// Runs a call with the algorithm and the options of a shape.
inline Status run_as_requested(DeviceRanks& own, const Call& call, const SwitchCall& shape, const char* algorithm) {
  DeviceCall made = own.call(0, call);
  made.options.algorithm = algorithm;
  made.options.algorithm_is_from_nccl = shape.by_nccl;
  made.options.channels = shape.channels;
  made.options.timeout_ms = 500'000;
  made.options.update_agreement_hash();
  Status status = enqueue({&made, 1});
  if (status.ok()) own.synchronize();
  return status;
}

// Makes a call of a rank that requests `algorithm`. Returns "right", or an error.
inline std::string run_switch_call(const Member& member, const SwitchCall& shape, const char* algorithm) {
  const auto& [own, rank, ranks, meet] = member;
  Problem problem{.collective = shape.collective, .ranks = ranks, .groups = {}};
  if (has_root(shape.collective)) problem.root = ranks - 1;
  const std::size_t bytes = size_of(shape.type), skipped = shape.skipped * bytes;
  const std::uint64_t inputs = input_blocks(problem, rank) * shape.count;
  const std::uint64_t outputs = output_blocks(problem, rank) * shape.count;
  std::byte* input = own.take<std::byte>(skipped + inputs * bytes) + skipped;
  std::byte* output = own.take<std::byte>(skipped + outputs * bytes + kPackBytes) + skipped;
  std::vector<std::byte> wanted(outputs * bytes + kPackBytes);  // No byte beyond the buffer may change.
  std::memcpy(wanted.data(), output, wanted.size());
  for (std::uint64_t i = 0; i < inputs; ++i) put(shape.type, input + i * bytes, term(rank, i));
  for (std::uint64_t i = 0; i < outputs; ++i)
    put(shape.type, wanted.data() + i * bytes, result(shape, problem, rank, i));
  meet.arrive_and_wait();
  Call call = call_of(shape.collective, shape.type, shape.count, input, output);
  call.root = problem.root;
  call.reduction = shape.reduction;
  const Status status = run_as_requested(own, call, shape, algorithm);
  if (!status.ok()) return status.message();
  if (std::memcmp(output, wanted.data(), wanted.size()) != 0)
    return std::string("wrong ") + name(shape.type) + " of " + name(shape.collective) + ", " +
           std::to_string(shape.count);
  const std::string ran = own[0].last_run().algorithm;
  return *algorithm == 0 || ran == algorithm ? "right" : "ran " + ran;
}

inline bool has_multicast(DeviceRanks& own) { return own.backend(0).peers().multicast_ring() != nullptr; }

}  // namespace tutti::test
