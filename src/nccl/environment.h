// Environment variables of this library only. They are read at each use, because tests and launchers may set them late.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tutti::nccl {

std::string variable(const std::string& name);  // Its value. Empty: unset.
std::int64_t timeout_ms_of_environment();       // TUTTI_TIMEOUT_MS times TUTTI_TIMEOUT_SCALE; -1: none.
// The next functions override the config, as in NCCL. Invalid values count as unset, with a warning in the log.
std::optional<int> blocking_of_environment();              // NCCL_COMM_BLOCKING: 0 or 1.
bool traffic_class_is_set();                               // TUTTI_IB_TC, or else NCCL_IB_TC: 0 to 255.
bool rdma_is_disabled();                                   // TUTTI_IB_DISABLE, or else NCCL_IB_DISABLE.
std::optional<int> ctas_of_environment(const char* name);  // NCCL_MIN_CTAS or NCCL_MAX_CTAS: 1 or more.
std::optional<int> cta_policy_of_environment();            // NCCL_CTA_POLICY: 0 to 3, or DEFAULT, EFFICIENCY, ZERO.
bool algorithm_is_set();                                   // TUTTI_ALGORITHM, or else NCCL_ALGO.

}  // namespace tutti::nccl
