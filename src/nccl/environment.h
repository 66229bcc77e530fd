// The variables that only this library reads, each time: tests and launchers may set them late.
#pragma once

#include <optional>
#include <string>

namespace tutti::nccl {

// Empty and unset are the same.
std::string memory_of_environment();  // TUTTI_NCCL_MEMORY
// TUTTI_NCCL_COMPRESS, and by the rest of their names those beside it: "_MAX_RELATIVE_ERROR", "_MIN_BYTES", "_TYPES",
// "_COLLECTIVES", "_COMMS".
std::string compression_of_environment(const std::string& rest);
std::string log_of_environment(const char* name);  // One of TUTTI_LOG, NCCL_DEBUG and their _FILE variants.
std::optional<int> blocking_of_environment();      // NCCL_COMM_BLOCKING, which NCCL lets override a config: 0 or 1.

}  // namespace tutti::nccl
