// Error feedback: assigns the residuals of buffers to calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/status.h"
#include "src/communicator/call/call.h"

namespace tutti {

// Memory of the caller, with one float per element of the buffer.
struct Residual {
  const std::byte* buffer = nullptr;
  std::uint64_t count = 0;
  DataType type = DataType::float32;
  float* values = nullptr;
};

// Sets call.residual if the call is a sum or an average of floats whose input has a residual. The communicator decides
// whether to use it. Fails if only a part of the input has a residual, or if the residual is of another type.
Status find_residual(const std::vector<Residual>& residuals, Rank rank, Rank ranks, Call& call);

}  // namespace tutti
