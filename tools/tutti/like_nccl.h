// What NCCL would take of its algorithms, and which plans move data as these do.
#pragma once

#include <string_view>

#include "src/plan/algorithm.h"
#include "tools/simulator/network.h"
#include "tools/simulator/simulate.h"
#include "tools/tutti/simulate_request.h"

namespace tutti::tool {

inline constexpr std::string_view kNvls = "nvls";

// The plan that ranks run_plan whose switches make its folds and stores (ProgramLimits::multicast): two_shot_mapped of
// an all-reduce, direct_mapped of an all-gather or a reduce-scatter. Null of others, which NCCL does not do so.
const Algorithm* plan_of_nvls(Collective collective);

// `unsupported` where NVLS is not for such calls, whatever the network.
Status check_nvls(const SimulateRequest& request);

// Channels, and the chunks of these, as NCCL cuts such a call; chunks of it in peers' memory are as long.
void cut_as_nvls(simulator::Call& call, const simulator::Network& network);

// Whether it is one of those that follow.
bool nccl_has(std::string_view algorithm);
// Fails for algorithms that NCCL does not have. A named algorithm may be one that NCCL never chooses within a host.
Status check_nccl_has(std::string_view algorithm, Collective collective);
// By its own estimates: "nvls", "ring", "chain" where there is a root, "direct" where messages are between ranks. Fails
// as nccl_protocol() does.
Result<std::string_view> nccl_algorithm(const simulator::Network& network, Collective collective, double bytes);
// The protocol of the latter three.
Result<Protocol> nccl_protocol(const simulator::Network& network, Collective collective, double bytes);

}  // namespace tutti::tool
