// Environment variables of this library only. They are read at each use, because tests and launchers may set them late.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tutti::nccl {

// An empty variable counts as unset.
std::string memory_of_environment();  // TUTTI_NCCL_MEMORY
// Value of TUTTI_NCCL_COMPRESS followed by `rest`: "", "_MAX_RELATIVE_ERROR", "_MIN_BYTES", "_TYPES", "_COLLECTIVES" or
// "_COMMS".
std::string compression_of_environment(const std::string& rest);
std::string log_of_environment(const char* name);  // One of TUTTI_LOG, NCCL_DEBUG and their _FILE variants.
std::string fallback_of_environment();             // TUTTI_NCCL_FALLBACK
bool is_set(const char* name);                     // TUTTI_TIMEOUT_MS, TUTTI_INIT_TIMEOUT_MS or TUTTI_TRANSPORT.
std::int64_t timeout_ms_of_environment();          // TUTTI_TIMEOUT_MS times TUTTI_TIMEOUT_SCALE; -1: none.
// The next functions override the config, as in NCCL. Invalid values count as unset.
std::optional<int> blocking_of_environment();              // NCCL_COMM_BLOCKING: 0 or 1.
std::string net_of_environment();                          // NCCL_NET; any name.
bool rdma_is_disabled();                                   // TUTTI_IB_DISABLE, or else NCCL_IB_DISABLE.
std::optional<int> ctas_of_environment(const char* name);  // NCCL_MIN_CTAS or NCCL_MAX_CTAS: 1 or more.

}  // namespace tutti::nccl
