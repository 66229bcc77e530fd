// Binds ranks to cores.
#pragma once

namespace perf {

struct Pinned {
  int core = -1;  // -1: not pinned.
  int cores = 0;  // Number of cores that the rank may use before pinning; 0: unknown.
};

// Binds the calling thread to core `index` of the cores that it may use. Does nothing if `ranks_here`, the number of
// ranks on this host, exceeds the number of these cores. A rank pinned to a shared core waits for time slices: an
// 8-byte all-reduce of 4 ranks on 2 cores became four times slower.
Pinned pin(int index, int ranks_here);
// Returns the number of cores and pins nothing.
Pinned leave_unpinned();

}  // namespace perf
