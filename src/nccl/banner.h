// Lines that this library writes to the log itself: the version, like NCCL's, what falls back to another NCCL, and
// variables whose values it ignores.
#pragma once

#include <string>

namespace tutti::nccl {

// Prints the line once in the process if NCCL_DEBUG is VERSION or above, or TUTTI_LOG is info or trace: to standard
// error, or appended to the file of TUTTI_LOG_FILE or NCCL_DEBUG_FILE.
void print_version_once();
// Writes a line to the same place if NCCL_DEBUG or TUTTI_LOG is info or trace.
void log_info(const std::string& text);
// Like log_info(), unless the level is none.
void log_warning(const std::string& text);

}  // namespace tutti::nccl
