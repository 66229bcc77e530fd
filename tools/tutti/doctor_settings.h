// What settings come to on this machine, for `tutti doctor`.
#pragma once

#include <string>

namespace tutti::tool {

// A line for people who have asked.
void warn(const std::string& words);

// Which settings keep communicators from being made here, each with the reason and divided by "; "; empty: none. Prints
// a warning of those that only keep them from host memory, where there are GPUs, and of those that have no effect.
std::string refused_here();

}  // namespace tutti::tool
