// Checks of a request for `tutti simulate` against its network: impossible values, and options without effect.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/simulator/network.h"
#include "tools/simulator/simulate.h"
#include "tools/tutti/simulate_request.h"

namespace tutti::tool {

// With more ranks, an algorithm must be named.
inline constexpr Rank kMaxRanksCompared = 1 << 17;

// Fails with invalid_argument for an option without effect, and with `unsupported` for an unavailable feature.
Status check_on(const SimulateRequest& request, const simulator::Network& network, const simulator::Costs& costs);

// True if the options request compression.
bool requests_compression(const SimulateRequest& request);

struct CheckedProgram {
  std::string_view algorithm;  // Name of the plan's algorithm.
  const simulator::Program* program = nullptr;
  bool ordered = false;  // Channels use different orders of ranks.
};

// Returns a sentence for each option without effect on these programs.
std::vector<std::string> notes_on(const SimulateRequest& request, const simulator::Network& network,
                                  const std::vector<CheckedProgram>& programs);

}  // namespace tutti::tool
