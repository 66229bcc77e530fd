// Protocol that NCCL chooses for a call by its own estimates, which is not always the fastest one. Comparisons with
// NCCL's times use it.
#pragma once

#include <cstdint>

#include "src/base/protocol.h"
#include "src/base/status.h"
#include "src/plan/problem.h"

namespace tutti::simulator {

// Returns NCCL's protocol for a ring, a chain (collectives with a root), or messages between all ranks, on one host
// whose GPUs have compute capability `sm` (90 for 9.0). Source: src/graph/tuning.cc of NCCL 2.12 to 2.20. `bytes`: size
// as counted by nccl-tests. Fails with `unsupported` for GPUs before NVLink 3.
Result<Protocol> nccl_protocol(std::uint32_t sm, Collective collective, Rank ranks, double bytes);

// Maximum number of ranks that pull data through the switches, for themselves and others (NCCL_MAX_NVLS_ARITY).
inline constexpr Rank kMaxNvlsHeads = 32;

// Returns true if NCCL chooses NVLS for a call of ranks that NVSwitches of the third generation or later connect: its
// estimate for NVLS is less than that of the best protocol of rings. Always false for collectives with a root, for
// messages between ranks, and for older GPUs. Source: src/graph/tuning.cc and search.cc of NCCL 2.19 to 2.27.
Result<bool> nccl_takes_nvls(std::uint32_t sm, Collective collective, Rank ranks, double bytes);

}  // namespace tutti::simulator
