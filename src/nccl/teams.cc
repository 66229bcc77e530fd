// NCCL teams: subsets of ranks that device code can reach. Kernels of a program cannot access the device memory of
// other ranks yet, so each rank is a team of its own.
#include "src/nccl/communicator.h"
#include "src/nccl/export.h"

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

}  // namespace

TUTTI_NCCL_API(ncclTeam_t, TeamWorld, ncclComm_t comm) { return all_of(comm); }

TUTTI_NCCL_API(ncclTeam_t, TeamLsa, ncclComm_t) { return {1, 0, 1}; }

TUTTI_NCCL_API(ncclTeam_t, TeamCft, ncclComm_t, int) { return {1, 0, 1}; }

TUTTI_NCCL_API(ncclTeam_t, TeamCftMultimem, ncclComm_t) { return {1, 0, 1}; }

TUTTI_NCCL_API(ncclTeam_t, TeamRail, ncclComm_t comm) { return all_of(comm); }

TUTTI_NCCL_API(int, TeamRankToWorld, ncclComm_t comm, ncclTeam_t team, int rank) {
  return world_rank(comm, team, rank);
}

TUTTI_NCCL_API(int, TeamRankToLsa, ncclComm_t comm, ncclTeam_t team, int rank) {
  return world_rank(comm, team, rank) - all_of(comm).rank;
}

}  // namespace tutti::nccl
