// What of a request for `tutti simulate` could not be, or would have no effect, on the network that it names.
#pragma once

#include <string>
#include <vector>

#include "tools/simulator/network.h"
#include "tools/simulator/simulate.h"
#include "tools/tutti/simulate_request.h"

namespace tutti::tool {

// Of more ranks an algorithm has to be named.
inline constexpr Rank kMaxRanksCompared = 1 << 17;

// invalid_argument where an option would do nothing, `unsupported` where something is asked for that is not to be had.
Status check_on(const SimulateRequest& request, const simulator::Network& network, const simulator::Costs& costs);

// Whether elements are asked to travel in fewer bytes than they have.
bool asks_for_compression(const SimulateRequest& request);

struct CheckedProgram {
  const simulator::Program* program = nullptr;
  bool ordered = false;  // Its channels have orders of ranks.
};

// What was asked for, but makes no difference to any of these: a sentence each.
std::vector<std::string> notes_on(const SimulateRequest& request, const simulator::Network& network,
                                  const std::vector<CheckedProgram>& programs);

}  // namespace tutti::tool
