// Output of `tutti simulate`.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/simulator/simulate.h"
#include "tools/tutti/simulate_request.h"

namespace tutti::tool {

struct SimulatedRun {
  std::string algorithm;
  simulator::Call call;
  simulator::Outcome outcome;
  double seconds = 0;  // Duration of the simulation.
};

// "ring with Simple in int8"
std::string words_of(std::string_view algorithm, const simulator::Call& call);

// Candidate that is not simulated because it takes too long.
struct LeftOut {
  std::string what;       // "ring", "one_shot with Simple".
  double from_bytes = 0;  // 0: all sizes.
};

struct Missing {
  const std::vector<LeftOut>& left_out;
  const std::set<std::string>& failed;  // Candidates without a time, and the reasons.
};

void begin_report(const SimulateRequest& request, const simulator::Network& network, const simulator::Costs& costs);
// Reports the runs of one size, best first.
void report(const SimulateRequest& request, const std::vector<SimulatedRun>& runs);
void end_report(const std::vector<std::vector<SimulatedRun>>& sizes, const Missing& missing);

void report_json(const SimulateRequest& request, const simulator::Network& network,
                 const std::vector<std::vector<SimulatedRun>>& sizes, const Missing& missing);

}  // namespace tutti::tool
