#include "src/base/own_cpus.h"

#include <sched.h>

#include <cerrno>

namespace tutti {
namespace {

std::vector<std::uint32_t> numbers_in(const std::vector<cpu_set_t>& sets) {
  std::vector<std::uint32_t> cpus;
  for (std::uint32_t cpu = 0; cpu < sets.size() * CPU_SETSIZE; ++cpu)
    if (CPU_ISSET_S(cpu, sets.size() * sizeof(cpu_set_t), sets.data())) cpus.push_back(cpu);
  return cpus;
}

}  // namespace

// The kernel rejects sets that are smaller than its own maximum and does not report that maximum.
std::vector<std::uint32_t> own_cpus() {
  for (std::size_t count = 1; count * CPU_SETSIZE <= kMaxOwnCpus; count *= 2) {
    std::vector<cpu_set_t> sets(count);
    if (::sched_getaffinity(0, count * sizeof(cpu_set_t), sets.data()) == 0) return numbers_in(sets);
    if (errno != EINVAL) break;
  }
  return {};
}

}  // namespace tutti
