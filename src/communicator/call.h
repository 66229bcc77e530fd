// One call as the API hands it over: arguments checked, buffers not yet looked at.
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/types.h"
#include "src/plan/problem.h"

namespace tutti {

enum class Kind : std::uint8_t { collective, all_to_all_v, send, recv };

// Blocks of unequal length, in elements; all arrays have one entry per rank.
struct Unequal {
  std::vector<std::uint64_t> send_counts, send_displacements, recv_counts, recv_displacements;
};

struct Call {
  Kind kind = Kind::collective;
  Collective collective = Collective::all_reduce;
  DataType type = DataType::float32;
  Reduction reduction = Reduction::sum;
  Rank root = 0;            // Or the peer of send and recv.
  std::uint64_t count = 0;  // Elements of a block.
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  double scalar = 1;                // pre_mul_sum: floats.
  std::int64_t integer_scalar = 1;  // pre_mul_sum: integers.
  const std::byte* factor =
      nullptr;                       // pre_mul_sum: where the scalar is read when the call runs; null: it is the above.
  const Unequal* unequal = nullptr;  // all_to_all_v; outlives the call.
  float* residual = nullptr;         // Error feedback, an element for each of the input; null: none.
};

// All that tells shapes of calls apart, but for the count.
inline std::uint64_t shape_of(const Call& call) {
  return std::uint64_t{call.root} << 32 | std::uint64_t(call.collective) << 24 | std::uint64_t(call.type) << 16 |
         std::uint64_t(call.reduction) << 8;
}

// The same, and whether there is a residual, which is a rank's own business.
inline std::uint64_t own_shape_of(const Call& call) { return shape_of(call) | (call.residual != nullptr ? 1 : 0); }

}  // namespace tutti
