// CPU affinity of the calling thread, for any number of CPUs.
#pragma once

#include <cstdint>
#include <vector>

namespace tutti {

inline constexpr std::uint32_t kMaxOwnCpus = 1 << 15;  // Four times the maximum of Linux.

// Returns the CPUs that the calling thread may run on, in ascending order, from sched_getaffinity(2). Returns an empty
// list with errno on failure.
std::vector<std::uint32_t> own_cpus();

}  // namespace tutti
