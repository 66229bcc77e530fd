// Translation of values of NCCL's environment variables into Tutti's.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/base/config.h"

namespace tutti {

// Returns our name for a value of NCCL_ALGO or NCCL_PROTO, or "" if the value has no effect. A list with several known
// names allows all of them and therefore forces none. Adds one sentence to `warnings` for each unsupported name, list,
// exclusion (^tree) or function prefix (broadcast:ring).
std::string algorithm_of_nccl(const std::string& value, std::vector<std::string>& warnings);
std::string protocol_of_nccl(const std::string& value, std::vector<std::string>& warnings);

// Returns a sentence about NCCL_DEBUG_SUBSYS, and one that lists other NCCL_ variables that are set without effect.
std::vector<std::string> notes_on_nccl_variables(const Environment& environment, std::span<const Variable> known);

// The next three functions return false and leave the output unchanged if the text is invalid. parse_level() accepts
// NCCL's levels in any case; VERSION and ABORT count as warn.
bool parse_level(const std::string& text, LogLevel& level);
// Also accepts NCCL's older numbers.
bool parse_p2p_level(const std::string& text, P2pLevel& level);
// NCCL's level LOC means off. All other levels mean automatic, because the distance of network card and GPU is not
// used. The older number 0 is accepted; 1 would be mistaken for "on".
bool parse_gpudirect(const std::string& text, GpuDirect& wanted);

}  // namespace tutti
