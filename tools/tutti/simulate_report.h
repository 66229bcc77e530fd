// What `tutti simulate` prints.
#pragma once

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
void end_report(const std::vector<std::vector<SimulatedRun>>& sizes, const std::string& left_out);

void report_json(const SimulateRequest& request, const Network& network,
                 const std::vector<std::vector<SimulatedRun>>& sizes);

}  // namespace tutti
