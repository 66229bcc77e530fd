// Which ranks the logical ranks of a plan are: hosts one after the other, within each its parts, and the ranks of each
// in their order.
#pragma once

#include <span>
#include <vector>

#include "src/plan/plan.h"

namespace tutti {

struct RankMapping {
  std::vector<std::vector<Rank>> groups;  // As in a Problem; empty: nothing to gain from them.
  std::vector<Rank> order;                // [logical rank]: the rank. Empty: the same one.
};

// `host_of`: for each rank a number that only ranks of its host have. There is something to gain where there are
// several hosts, and several ranks on one of them.
RankMapping rank_mapping_of(std::span<const Rank> host_of);

// The same where hosts have parts with links of their own, as NUMA domains: groups[0] are those, and groups[1], of
// several hosts, how many of them each has. `part_of`: for each rank a number that only ranks of its part have; a part
// is of one host. Nothing to gain where no host has several, or where each has one rank.
RankMapping rank_mapping_of(std::span<const Rank> host_of, std::span<const Rank> part_of);

// Whether plans of the problem can be embedded, as those below are then: blocks that belong to ranks stay where they
// are, so such plans are of the ranks as they are numbered.
bool embeds(const RankMapping& rank_mapping, const Problem& problem);

// The problem that the logical ranks have, and all plans for it, which are then those of the ranks.
Problem logical(const RankMapping& rank_mapping, const Problem& problem);
std::vector<Plan> map_ranks(const RankMapping& rank_mapping, const Problem& problem, std::vector<Plan> plans);

// The plan of one rank, of any problem, from that of its logical rank; blocks that belong to ranks go with them.
// Operands are of one block each where blocks do, as those of plans are that go round.
Plan embedded(const RankMapping& rank_mapping, const Problem& problem, const Plan& plan);

}  // namespace tutti
