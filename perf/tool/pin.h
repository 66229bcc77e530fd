// Binds ranks to cores.
#pragma once

namespace perf {

struct Pinned {
  int core = -1;  // -1: not pinned.
  int cores = 0;  // Number of cores that the rank may use, before it was pinned; 0: unknown.
};

// Binds the calling thread to the index-th of the cores that it may use. Does not, if `ranks_here`, the number of ranks
// on this host, exceeds the number of these cores: a rank pinned to a core that others share waits for time slices,
// which made an all-reduce of 8 bytes between 4 ranks on 2 cores four times slower.
Pinned pin(int index, int ranks_here);
// Returns the number of cores and pins nothing.
Pinned leave_unpinned();

}  // namespace perf
