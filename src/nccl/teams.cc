// NCCL teams: subsets of ranks that device code can reach. Without a fallback library, kernels of a program cannot
// access the device memory of other ranks, so each rank is a team of its own.
#include "src/nccl/export.h"
#include "src/nccl/forward.h"

namespace tutti::nccl {
namespace {

ncclTeam_t all_of(const ncclComm* comm) {
  const Shared communicator = find(comm);
  if (communicator == nullptr) return {};
  return {communicator->rank_config.ranks, communicator->rank_config.rank, 1};
}

// World rank of a member of a team to which this rank belongs.
int world_rank(const ncclComm* comm, const ncclTeam_t& team, int rank) {
  return all_of(comm).rank + (rank - team.rank) * team.stride;
}

// Returns what the fallback library returns, else `own`.
template <typename Value, typename... Arguments>
Value from_fallback(const char* name, const ncclComm* comm, Value own, Arguments... arguments) {
  using Function = Value(ncclComm_t, Arguments...);
  (void)caught([&] {
    return forward<Function>({name, "", Use::query}, comm, [&](Function* function, ncclComm_t there) {
      own = function(there, arguments...);
      return ncclSuccess;
    });
  });
  return own;
}

}  // namespace

TUTTI_NCCL_API(ncclTeam_t, TeamWorld, ncclComm_t comm) { return all_of(comm); }

TUTTI_NCCL_API(ncclTeam_t, TeamLsa, ncclComm_t comm) { return from_fallback("ncclTeamLsa", comm, ncclTeam_t{1, 0, 1}); }

TUTTI_NCCL_API(ncclTeam_t, TeamCft, ncclComm_t, int) { return {1, 0, 1}; }

TUTTI_NCCL_API(ncclTeam_t, TeamCftMultimem, ncclComm_t) { return {1, 0, 1}; }

TUTTI_NCCL_API(ncclTeam_t, TeamRail, ncclComm_t comm) { return from_fallback("ncclTeamRail", comm, all_of(comm)); }

TUTTI_NCCL_API(int, TeamRankToWorld, ncclComm_t comm, ncclTeam_t team, int rank) {
  return world_rank(comm, team, rank);
}

TUTTI_NCCL_API(int, TeamRankToLsa, ncclComm_t comm, ncclTeam_t team, int rank) {
  return from_fallback("ncclTeamRankToLsa", comm, world_rank(comm, team, rank) - all_of(comm).rank, team, rank);
}

}  // namespace tutti::nccl
