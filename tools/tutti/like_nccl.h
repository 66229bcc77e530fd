// NCCL's choice of algorithm and protocol, and the plans that move data like NCCL's algorithms.
#pragma once

#include <string_view>

#include "src/plan/algorithm.h"
#include "tools/simulator/network.h"
#include "tools/simulator/simulate.h"
#include "tools/tutti/simulate_request.h"

namespace tutti::tool {

inline constexpr std::string_view kNvls = "nvls";

// Returns the algorithm whose plan corresponds to NVLS if switches execute its folds and stores
// (ProgramLimits::multicast): two_shot_mapped for all-reduce, direct_mapped for all-gather and reduce-scatter. Null for
// collectives without NVLS.
const Algorithm* plan_of_nvls(Collective collective);

// Fails with `unsupported` if NCCL has no NVLS for such calls on any network.
Status check_nvls(const SimulateRequest& request);

// Sets channels and chunk size of the call as NCCL does for NVLS. Accesses to peers' memory use chunks of the same
// size.
void cut_as_nvls(simulator::Call& call, const simulator::Network& network);

// Returns true if nccl_algorithm() can return this algorithm.
bool nccl_has(std::string_view algorithm);
// Fails for algorithms that NCCL does not have. Accepts algorithms that NCCL never chooses within a host.
Status check_nccl_has(std::string_view algorithm, Collective collective);
// Returns the algorithm that NCCL's own estimates prefer: "nvls" or "ring"; "chain" for broadcast and reduce; "direct"
// for all-to-all, gather and scatter. Fails like nccl_protocol().
Result<std::string_view> nccl_algorithm(const simulator::Network& network, Collective collective, double bytes);
// Returns NCCL's protocol for "ring", "chain" and "direct". Fails with `unsupported` for GPUs before A100.
Result<Protocol> nccl_protocol(const simulator::Network& network, Collective collective, double bytes);

}  // namespace tutti::tool
