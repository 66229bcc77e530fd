// Protocol that NCCL chooses for a call, by its own estimates. Not always the best choice. Used to compare with
// NCCL's times.
#pragma once

#include <cstdint>

#include "src/base/protocol.h"
#include "src/base/status.h"
#include "src/plan/problem.h"

namespace tutti::simulator {

// Protocol of a ring, of a chain for collectives with a root, and of messages between all ranks, on one host whose
// GPUs have this compute capability (90 for 9.0). Source: src/graph/tuning.cc of NCCL 2.12 to 2.20. `bytes` as
// nccl-tests count them. `unsupported` for GPUs before NVLink 3.
Result<Protocol> nccl_protocol(std::uint32_t sm, Collective collective, Rank ranks, double bytes);

// So many ranks pull through the switches at most, each for itself and others (NCCL_MAX_NVLS_ARITY).
inline constexpr Rank kMaxNvlsHeads = 32;

// Whether NCCL leaves a call to the switches (NVLS), where NVSwitches of the third generation or later join all ranks:
// what it estimates of that is less than of the rings' best protocol. By src/graph/tuning.cc and search.cc of 2.19 to
// 2.27. Never where a collective has a root, or messages are between ranks, or GPUs are older.
Result<bool> nccl_takes_nvls(std::uint32_t sm, Collective collective, Rank ranks, double bytes);

}  // namespace tutti::simulator
