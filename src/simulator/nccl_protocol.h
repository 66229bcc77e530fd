// Which protocol NCCL takes for a call: by its own estimates, which are not the best choice everywhere. Of use where
// its times are to be compared with what is simulated.
#pragma once

#include <cstdint>

#include "src/base/protocol.h"
#include "src/base/status.h"
#include "src/plan/problem.h"

namespace tutti {

// Of a ring, of a chain where there is a root, and of messages between all ranks, on one host of GPUs with this compute
// capability (90 for 9.0), by src/graph/tuning.cc of NCCL 2.12 to 2.20. `bytes` as nccl-tests count them. `unsupported`
// for GPUs without NVLinks of the third generation or later.
Result<Protocol> nccl_protocol(std::uint32_t sm, Collective collective, Rank ranks, double bytes);

}  // namespace tutti
