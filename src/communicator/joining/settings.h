// Checks of settings before communicators exist: which settings prevent their creation, and which have no effect.
#pragma once

#include <string>
#include <vector>

#include "src/base/config.h"

namespace tutti {

// Returns one sentence per setting that prevents creation. Opens the secret file, the topology file and the devices of
// a requested transport, and inspects network interfaces. Does not connect to other ranks or resolve host names.
std::vector<std::string> refused_settings(const Environment& environment, const Config& config);
// Returns one sentence per setting that libnccl.so.2 or the Python package rejects. libtutti.so does not read them.
std::vector<std::string> refused_by_clients(const Environment& environment);
// Like refused_settings(), for settings that require GPUs.
std::vector<std::string> refused_on_host_memory(const Config& config);

// Returns which of TUTTI_TUNE and TUTTI_TUNE_FILE are set without effect on calls of host memory, and why; empty if
// neither.
std::string ineffective_tuning(const Config& config);

}  // namespace tutti
