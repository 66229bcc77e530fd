// What `tutti simulate` prints.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "src/simulator/simulate.h"
#include "tools/tutti/simulate_request.h"

namespace tutti {

struct SimulatedRun {
  std::string algorithm;
  SimulatedCall call;
  Outcome outcome;
  double seconds = 0;  // That the simulation took.
};

void begin_report(const SimulateRequest& request, const Network& network, const Costs& costs);
// Of one size; the best run first.
void report(const SimulateRequest& request, const std::vector<SimulatedRun>& runs);
// `left_out`: algorithms that were not tried; `failed`: what was, and why it has no time.
void end_report(const std::vector<std::vector<SimulatedRun>>& sizes, const std::string& left_out,
                const std::set<std::string>& failed);

void report_json(const SimulateRequest& request, const Network& network,
                 const std::vector<std::vector<SimulatedRun>>& sizes, const std::set<std::string>& failed);

}  // namespace tutti
