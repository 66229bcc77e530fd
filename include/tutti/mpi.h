/* A Tutti communicator with the ranks of an MPI communicator. Header-only, so that libtutti links no MPI. */
#ifndef TUTTI_MPI_H
#define TUTTI_MPI_H

#include <mpi.h>

#include "tutti/tutti.h"

/* Collective over `ranks`; blocks as tutti_comm_create does. MPI carries the id and nothing else. */
static inline tutti_status tutti_comm_create_mpi(MPI_Comm ranks, const tutti_comm_options* options, tutti_comm* comm) {
  int rank = 0;
  int size = 0;
  tutti_status status = tutti_ok;
  struct {
    tutti_unique_id id;
    int status; /* Travels with the id, so that no rank waits for a root that failed. */
  } invitation = {{{0}}, 0};

  if (MPI_Comm_rank(ranks, &rank) != MPI_SUCCESS || MPI_Comm_size(ranks, &size) != MPI_SUCCESS) {
    return tutti_invalid_argument;
  }
  if (rank == 0) invitation.status = (int)tutti_get_unique_id(&invitation.id);
  if (MPI_Bcast(&invitation, (int)sizeof invitation, MPI_BYTE, 0, ranks) != MPI_SUCCESS) return tutti_remote_error;
  status = (tutti_status)invitation.status;
  if (status != tutti_ok) return status;
  return tutti_comm_create(&invitation.id, rank, size, options, comm);
}

#endif
