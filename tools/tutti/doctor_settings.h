// Effects of the settings on this machine, for `tutti doctor`.
#pragma once

#include <string>
#include <vector>

namespace tutti::tool {

// Settings with which no communicator can be created here, each with the reason, separated by "; "; empty: none. Adds a
// warning for settings without effect and, on a machine with GPUs, for those that exclude only host memory.
std::string refused_here(std::vector<std::string>& warnings);

}  // namespace tutti::tool
