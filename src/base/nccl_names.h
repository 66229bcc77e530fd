// What values of NCCL's variables mean here: NCCL's names for what we have under others, or beside ours.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/base/config.h"

namespace tutti {

// The name of ours that a value of NCCL_ALGO or NCCL_PROTO stands for, "" where it has no effect. A list is of what may
// be taken, so that several names that NCCL knows force nothing. Why names, lists, exclusions (^tree) and functions
// (broadcast:ring) are not heeded is said in `warnings`, a sentence each.
std::string algorithm_of_nccl(const std::string& value, std::vector<std::string>& warnings);
std::string protocol_of_nccl(const std::string& value, std::vector<std::string>& warnings);

// One sentence about NCCL_DEBUG_SUBSYS, and one that lists the other NCCL_ variables that are set and have no effect.
std::vector<std::string> notes_on_nccls(const Environment& environment, std::span<const Variable> known);

// The next three leave what they were given alone where the text says none of it.
// Accepts NCCL's levels, in any case. VERSION and ABORT count as warn.
bool parse_level(const std::string& text, LogLevel& level);
// NCCL's older numbers are taken as well.
bool parse_path(const std::string& text, Path& path);
// Of NCCL's levels one means never; how far a network card is from a GPU is not known for the others. Its older numbers
// are not taken, but for 0: 1 would be read as "on".
bool parse_gpudirect(const std::string& text, GpuDirect& wanted);

}  // namespace tutti
