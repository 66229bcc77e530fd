// Which sizes ran as what, in words.
#pragma once

#include <string>
#include <vector>

#include "perf/tool/report.h"

namespace perf {

// "one_shot (LL) 8 and 128 to 512 B, ring (Simple) 32 B"; empty where nothing was chosen.
std::string spans_of(const std::vector<Row>& rows, Timing Row::*form);

}  // namespace perf
