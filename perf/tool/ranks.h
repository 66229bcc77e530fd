// The ranks that a thread drives: one on host memory, as many as -g selects on GPUs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "perf/tool/rank.h"

namespace perf {

using Ranks = std::vector<std::unique_ptr<Rank>>;

// Creates the ranks of this thread, at the same time as all other threads of `threads`, in its order. On host memory
// their communicator is another handle of `threads`.
Ranks make_ranks(const Collective& collective, const Options& options, tutti_comm threads);
// Allocates the buffers of each rank and registers windows if the options select them.
void allocate(Ranks& ranks, const Options& options, std::size_t bytes);
// Returns the calls of a group of `each` calls per rank: the first calls of all ranks, then the second ones.
std::vector<Call> group_of(const Ranks& ranks, const Case& one, std::uint32_t each);
// Destroys the communicators of the ranks and `threads`. Collective over all threads.
void end_ranks(Ranks& ranks, tutti_comm threads);

}  // namespace perf
