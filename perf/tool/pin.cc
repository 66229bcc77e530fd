#include "perf/tool/pin.h"

#include <sched.h>

namespace perf {

Pinned leave_unpinned() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
  return {-1, CPU_COUNT(&allowed)};
}

Pinned pin(int index, int ranks_here) {
  Pinned result = leave_unpinned();
  const bool bound_already = result.cores == 1;  // Set by a launcher.
  if (result.cores == 0 || (ranks_here > result.cores && !bound_already)) return result;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return result;
  int skip = index % result.cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || skip-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    if (::sched_setaffinity(0, sizeof one, &one) == 0) result.core = core;
    return result;
  }
  return result;
}

}  // namespace perf
