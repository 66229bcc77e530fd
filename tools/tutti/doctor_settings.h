// Effects of the settings on this machine, for `tutti doctor`.
#pragma once

#include <string>
#include <vector>

namespace tutti::tool {

// Returns the settings with which no communicator can be created here, each with the reason, as the end of a message:
// after a space, or several on lines of their own; empty if there are none. Adds a warning for settings without effect
// and, on a machine with GPUs, for settings that exclude only host memory.
std::string refused_here(std::vector<std::string>& warnings);
// Returns an error with the settings that libnccl.so.2 or the Python package rejects; empty if there are none.
std::string refused_by_clients_here();

}  // namespace tutti::tool
