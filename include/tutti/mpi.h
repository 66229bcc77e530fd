/* A Tutti communicator with the ranks of an MPI communicator. Header-only, so that libtutti links no MPI. */
#ifndef TUTTI_MPI_H
#define TUTTI_MPI_H

#include <mpi.h>
#include <string.h>

#include "tutti/tutti.h"

/* Collective over `ranks`; blocks as tutti_comm_create does. Uses MPI only to broadcast the id. */
static inline tutti_status tutti_comm_create_mpi(MPI_Comm ranks, const tutti_comm_options* options, tutti_comm* comm) {
  const char* const self = "tutti_comm_create_mpi";
  int rank = 0;
  int size = 0;
  struct {
    tutti_unique_id id;
    int status; /* Sent with the id: if rank 0 fails, all ranks return its error. */
    char text[508];
  } message;

  if (MPI_Comm_rank(ranks, &rank) != MPI_SUCCESS || MPI_Comm_size(ranks, &size) != MPI_SUCCESS)
    return tutti_report(self, tutti_invalid_argument, "MPI_Comm_rank or MPI_Comm_size failed");
  memset(&message, 0, sizeof message);
  if (rank == 0) {
    message.status = (int)tutti_get_unique_id(&message.id);
    if (message.status != tutti_ok) strncpy(message.text, tutti_last_error(NULL), sizeof message.text - 1);
  }
  if (MPI_Bcast(&message, (int)sizeof message, MPI_BYTE, 0, ranks) != MPI_SUCCESS)
    return tutti_report(self, tutti_remote_error, "MPI_Bcast of the unique id failed");
  if (message.status != tutti_ok) {
    message.text[sizeof message.text - 1] = '\0';
    return tutti_report("rank 0", (tutti_status)message.status, message.text);
  }
  return tutti_comm_create(&message.id, rank, size, options, comm);
}

#endif
