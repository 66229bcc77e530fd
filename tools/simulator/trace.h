// A trace as browsers show it.
#pragma once

#include <string>
#include <vector>

#include "tools/simulator/engine.h"

namespace tutti::simulator {

// The "trace event format" of chrome://tracing and ui.perfetto.dev: a line for each rank's channel, one for each link.
std::string chrome_trace(const std::vector<TraceEvent>& events, const Network& network);

}  // namespace tutti::simulator
