// Error feedback: which buffers have residuals, and which of them a call has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/status.h"
#include "src/communicator/call.h"

namespace tutti {

// Memory of the caller's: a float for each element of the buffer.
struct Residual {
  const std::byte* buffer = nullptr;
  std::uint64_t count = 0;
  DataType type = DataType::float32;
  float* values = nullptr;
};

// Gives the call of this rank its residual, if it is a sum or an average of floats that has one: whether it is used is
// for the communicator to say. Fails where only a part of the input has one, or that is of another type.
Status find_residual(const std::vector<Residual>& residuals, Rank rank, Rank ranks, Call& call);

}  // namespace tutti
