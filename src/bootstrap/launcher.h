// Ranks from the environment: ours, torchrun's, Open MPI's, MPICH's (PMI) or Slurm's variables, in this order.
#pragma once

#include <string>

#include "src/base/config.h"
#include "src/base/status.h"
#include "src/bootstrap/bootstrap.h"

namespace tutti {

// Where the ranks of a job meet before they have a unique id.
struct MeetingPoint {
  std::string host;  // Of rank 0; empty: all ranks are on one host.
  std::uint16_t port = 0;
  const char* port_from = "";  // " (MASTER_PORT + 1)", where nobody has named the port itself.
  std::string job;             // Of one host: names an abstract socket.
  bool by_parent = false;      // Nothing names the job but the process that started the ranks, if one started them all.
};

struct LaunchedRank {
  Rank rank = 0;
  Rank ranks = 1;
  std::string launcher;  // "torchrun (RANK, WORLD_SIZE, MASTER_ADDR)"; empty: none, one rank.
  MeetingPoint meeting;
};

// Errors name the variable and its value.
Result<LaunchedRank> find_launched_rank(const Environment& environment);

// Of TUTTI_ROOT alone, set or not.
Status check_root(const Environment& environment);

// Rank 0 makes the id and hands it to the others, in the thread of its rendezvous; the others ask for it.
Result<UniqueId> share_unique_id(const LaunchedRank& launched, const RendezvousOptions& options, const Watch& watch);

// What may keep the ranks apart that meet there, and the cure, to be added to messages; empty: nothing that we know.
std::string advice_for(const MeetingPoint& meeting);
// Adds it to the failure of ranks that waited in vain.
Status explain_absence(Status status, const MeetingPoint& meeting);

}  // namespace tutti
