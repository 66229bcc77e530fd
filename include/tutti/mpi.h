/* A Tutti communicator with the ranks of an MPI communicator. Header-only, so that libtutti links no MPI. */
#ifndef TUTTI_MPI_H
#define TUTTI_MPI_H

#include <mpi.h>
#include <string.h>

#include "tutti/tutti.h"

/* Collective over `ranks`; blocks as tutti_comm_create does. MPI carries the id and nothing else. */
static inline tutti_status tutti_comm_create_mpi(MPI_Comm ranks, const tutti_comm_options* options, tutti_comm* comm) {
  const char* const self = "tutti_comm_create_mpi";
  int rank = 0;
  int size = 0;
  struct {
    tutti_unique_id id;
    int status; /* Travels with the id, so that no rank waits for a root that failed, and all know why. */
    char words[508];
  } invitation;

  if (MPI_Comm_rank(ranks, &rank) != MPI_SUCCESS || MPI_Comm_size(ranks, &size) != MPI_SUCCESS)
    return tutti_report(self, tutti_invalid_argument, "MPI does not say which rank of how many this is");
  memset(&invitation, 0, sizeof invitation);
  if (rank == 0) {
    invitation.status = (int)tutti_get_unique_id(&invitation.id);
    if (invitation.status != tutti_ok) strncpy(invitation.words, tutti_last_error(NULL), sizeof invitation.words - 1);
  }
  if (MPI_Bcast(&invitation, (int)sizeof invitation, MPI_BYTE, 0, ranks) != MPI_SUCCESS)
    return tutti_report(self, tutti_remote_error, "MPI did not bring the unique id from rank 0 to the others");
  if (invitation.status != tutti_ok) {
    invitation.words[sizeof invitation.words - 1] = '\0';
    return tutti_report("rank 0", (tutti_status)invitation.status, invitation.words);
  }
  return tutti_comm_create(&invitation.id, rank, size, options, comm);
}

#endif
