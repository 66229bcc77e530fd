// Which settings of a process keep its communicators from being made, and which have no effect: for who wants to know
// before there are any.
#pragma once

#include <string>
#include <vector>

#include "src/base/config.h"

namespace tutti {

// A sentence for each. Opens the secret file and that of a topology, and the devices of a transport that is asked for,
// and looks at the interfaces; joins nobody, and looks up no host.
std::vector<std::string> refused_settings(const Environment& environment, const Config& config);
// The same of those that GPUs can heed, and host memory cannot.
std::vector<std::string> refused_on_host_memory(const Config& config);

// Which of TUTTI_TUNE and TUTTI_TUNE_FILE are set and have no effect, since no call of host memory tries another
// algorithm, and why; empty: neither.
std::string idle_tuning(const Config& config);

}  // namespace tutti
