// Assignment of ranks to the logical ranks of a plan. Logical ranks are ordered by host, then by part of the host, then
// by rank.
#pragma once

#include <span>
#include <vector>

#include "src/plan/plan.h"

namespace tutti {

struct RankMapping {
  std::vector<std::vector<Rank>> groups;  // Groups as in Problem; empty if grouping gains nothing.
  std::vector<Rank> order;                // [logical rank]: the rank. Empty: identity.
};

// Returns a mapping by hosts. `host_of` has a number for each rank that is unique to its host. The mapping has groups
// only if there are several hosts and one of them has several ranks.
RankMapping rank_mapping_of(std::span<const Rank> host_of);

// Returns a mapping by hosts and their parts with links of their own, such as NUMA domains. groups[0] has the ranks of
// each part. With several hosts, groups[1] has the parts of each host. `part_of` has a number for each rank that is
// unique to its part; a part belongs to one host. The mapping is empty if every host has one part, or every part has
// one rank.
RankMapping rank_mapping_of(std::span<const Rank> host_of, std::span<const Rank> part_of);

// Returns whether map_ranks() can map plans of this problem. If blocks belong to ranks, it cannot move them: such plans
// keep the order of ranks.
bool applies(const RankMapping& rank_mapping, const Problem& problem);

// logical() returns the problem of the logical ranks. map_ranks() turns plans for that problem into plans of the ranks.
Problem logical(const RankMapping& rank_mapping, const Problem& problem);
std::vector<Plan> map_ranks(const RankMapping& rank_mapping, const Problem& problem, std::vector<Plan> plans);

// Returns the plan of one rank, for any problem, from the plan of its logical rank. Blocks that belong to ranks move
// with their ranks. In that case each operand must lie within one block, as in plans of rings.
Plan mapped_plan(const RankMapping& rank_mapping, const Problem& problem, const Plan& plan);

}  // namespace tutti
