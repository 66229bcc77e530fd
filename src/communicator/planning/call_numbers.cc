#include "src/communicator/planning/call_numbers.h"

#include <algorithm>

#include "src/communicator/planning/planning.h"
#include "src/compression/philox.h"

namespace tutti {
namespace {

std::uint64_t joined(std::uint32_t low, std::uint32_t high) { return std::uint64_t{high} << 32 | low; }

}  // namespace

CallNumbers numbers_of(const Call& call, Rank rank, Rank ranks, std::uint64_t sequence, std::uint64_t seed) {
  const PhiloxWords keys =
      philox({{rank, static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32), 0}}, seed);
  const Problem problem = problem_of(call, ranks);
  const std::uint64_t inputs = input_blocks(problem, rank), outputs = output_blocks(problem, rank);
  return {.key = joined(keys.words[0], keys.words[1]),
          .input_key = joined(keys.words[2], keys.words[3]),
          .elements = std::max(inputs, outputs) * call.count,
          .first_input = outputs > inputs ? rank * call.count : 0,
          .first_output = inputs > outputs ? rank * call.count : 0};
}

}  // namespace tutti
