// Traces for browsers.
#pragma once

#include <string>
#include <vector>

#include "tools/simulator/engine.h"

namespace tutti::simulator {

// Returns a trace in the "trace event format" of chrome://tracing and ui.perfetto.dev, with a track per rank and per
// link.
std::string chrome_trace(const std::vector<TraceEvent>& events, const Network& network);

}  // namespace tutti::simulator
