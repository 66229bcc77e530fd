// One call as the API passes it on: arguments are checked, buffers are not.
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/types.h"
#include "src/plan/problem.h"

namespace tutti {

enum class Kind : std::uint8_t { collective, all_to_all_v, send, recv };

// Blocks of unequal length, in elements. Each array has one entry per rank.
struct Unequal {
  std::vector<std::uint64_t> send_counts, send_displacements, recv_counts, recv_displacements;
};

struct Call {
  Kind kind = Kind::collective;
  Collective collective = Collective::all_reduce;
  DataType type = DataType::float32;
  Reduction reduction = Reduction::sum;
  Rank root = 0;            // For send and recv: the peer.
  std::uint64_t count = 0;  // Elements of a block.
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  double scalar = 1;                // pre_mul_sum of floats, and real part for complex numbers.
  double imaginary_scalar = 0;      // pre_mul_sum of complex numbers.
  std::int64_t integer_scalar = 1;  // pre_mul_sum of integers.
  // pre_mul_sum: address from which the scalar is read when the call runs; null: the fields above are used.
  const std::byte* factor = nullptr;
  const Unequal* unequal = nullptr;  // all_to_all_v only. Must outlive the call.
  float* residual = nullptr;         // Error feedback: one value per element of the input; null: off.
};

// Returns the shape of a call: all that distinguishes calls except the count.
inline std::uint64_t shape_of(const Call& call) {
  return std::uint64_t{call.root} << 32 | std::uint64_t(call.collective) << 24 | std::uint64_t(call.type) << 16 |
         std::uint64_t(call.reduction) << 8;
}

// Like shape_of(), but includes the kind, and whether the call has a residual. Ranks may differ in these.
inline std::uint64_t own_shape_of(const Call& call) {
  return shape_of(call) | std::uint64_t(call.kind) << 1 | (call.residual != nullptr ? 1 : 0);
}

}  // namespace tutti
