// The CPUs of the calling thread, however many the machine has.
#pragma once

#include <cstdint>
#include <vector>

namespace tutti {

inline constexpr std::uint32_t kMaxOwnCpus = 1 << 15;  // Four times what Linux can be built for.

// The numbers of the CPUs that the calling thread may run on, ascending, as sched_getaffinity(2) tells. None, with
// errno, if it does not tell.
std::vector<std::uint32_t> own_cpus();

}  // namespace tutti
