// Checks of a request for `tutti simulate` against its network: impossible values, and options without effect.
#pragma once

#include <string>
#include <vector>

#include "tools/simulator/network.h"
#include "tools/simulator/simulate.h"
#include "tools/tutti/simulate_request.h"

namespace tutti::tool {

// With more ranks, an algorithm must be named.
inline constexpr Rank kMaxRanksCompared = 1 << 17;

// invalid_argument where an option would do nothing, `unsupported` where something is asked for that is not to be had.
Status check_on(const SimulateRequest& request, const simulator::Network& network, const simulator::Costs& costs);

// Whether elements are asked to travel in fewer bytes than they have.
bool requests_compression(const SimulateRequest& request);

struct CheckedProgram {
  const simulator::Program* program = nullptr;
  bool ordered = false;  // Its channels have orders of ranks.
};

// Options without effect on these programs, a sentence each.
std::vector<std::string> notes_on(const SimulateRequest& request, const simulator::Network& network,
                                  const std::vector<CheckedProgram>& programs);

}  // namespace tutti::tool
