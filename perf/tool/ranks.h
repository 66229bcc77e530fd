// The ranks that a thread drives: one on host memory, as many as -g selects on GPUs.
#pragma once

#include <memory>
#include <vector>

#include "perf/tool/rank.h"

namespace perf {

using Ranks = std::vector<std::unique_ptr<Rank>>;

// Makes the ranks of all threads in `threads`, in its order, at once. On host memory their communicator is another
// handle of `threads`.
Ranks make_ranks(const Collective& collective, const Options& options, tutti_comm threads);
// Gives each its buffers, in windows if the options select them.
void allocate(Ranks& ranks, const Options& options, std::size_t bytes);
// Ends their communicators and `threads`, with all other threads.
void end_ranks(Ranks& ranks, tutti_comm threads);

}  // namespace perf
