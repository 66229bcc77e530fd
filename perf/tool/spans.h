// Describes the algorithm that was used for each range of sizes.
#pragma once

#include <string>
#include <vector>

#include "perf/tool/report.h"

namespace perf {

// "one_shot (LL) 8 and 128 to 512 B, ring (Simple) 32 B"; empty if nothing was chosen.
std::string spans_of(const std::vector<Row>& rows, Timing Row::*timing_of);

}  // namespace perf
