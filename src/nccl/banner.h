// Version line, like NCCL's.
#pragma once

namespace tutti::nccl {

// Prints the line once in the process if NCCL_DEBUG is VERSION or above, or TUTTI_LOG is info or trace: to standard
// error, or appended to the file of TUTTI_LOG_FILE or NCCL_DEBUG_FILE.
void print_version_once();

}  // namespace tutti::nccl
