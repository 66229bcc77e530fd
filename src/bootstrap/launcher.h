// Detection of ranks from environment variables: Tutti's, torchrun's, Open MPI's, MPICH's (PMI) or Slurm's, in this
// order.
#pragma once

#include <string>

#include "src/base/config.h"
#include "src/base/status.h"
#include "src/bootstrap/bootstrap.h"

namespace tutti {

// Meeting point of the ranks of a job before they have a unique id.
struct RendezvousPoint {
  std::string host;  // Host of rank 0; empty: all ranks are on one host.
  std::uint16_t port = 0;
  std::string variable{};  // Variable that named the host: "MASTER_ADDR".
  std::string job;         // Name of the job on its host, for an abstract socket.
  bool by_parent = false;  // Only the common parent process identifies the job.
};

struct LaunchedRank {
  Rank rank = 0;
  Rank ranks = 1;
  std::string launcher;  // "torchrun (RANK, WORLD_SIZE, MASTER_ADDR)"; empty: no launcher, one rank.
  RendezvousPoint point;
};

// Returns rank, ranks and rendezvous address. Errors name the variable and its value.
Result<LaunchedRank> find_launched_rank(const Environment& environment);

// Checks TUTTI_ROOT only, if set.
Status check_root(const Environment& environment);

// Rank 0 creates the id and serves it in the thread of its rendezvous. The other ranks request it.
Result<UniqueId> share_unique_id(const LaunchedRank& launched, const RendezvousOptions& options, const Watch& watch);

// Returns likely reasons why ranks do not meet there and the remedy, for messages. Empty if unknown.
std::string advice_for(const RendezvousPoint& point);

}  // namespace tutti
