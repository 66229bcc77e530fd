/* As much of MPI as tutti/mpi.h uses, in this process alone: one rank at a time, and a broadcast that brings to rank 1
 * what rank 0 has sent, and can be made to fail. */
#ifndef TUTTI_TESTS_MPI_STUB_H
#define TUTTI_TESTS_MPI_STUB_H

#include <string.h>

typedef int MPI_Comm;
typedef int MPI_Datatype;
enum { MPI_SUCCESS = 0, MPI_ERR_OTHER = 15, MPI_BYTE = 1, MPI_COMM_WORLD = 0, MPI_COMM_NULL = 1 };

extern int mpi_stub_broadcast_result;
extern int mpi_stub_rank;
extern char mpi_stub_sent[4096];

static inline int MPI_Comm_rank(MPI_Comm comm, int* rank) {
  *rank = mpi_stub_rank;
  return comm == MPI_COMM_WORLD ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static inline int MPI_Comm_size(MPI_Comm comm, int* size) {
  *size = mpi_stub_rank + 1;
  return comm == MPI_COMM_WORLD ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static inline int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  (void)type, (void)root, (void)comm;
  if (mpi_stub_rank == 0) memcpy(mpi_stub_sent, buffer, (size_t)count);
  if (mpi_stub_rank != 0) memcpy(buffer, mpi_stub_sent, (size_t)count);
  return mpi_stub_broadcast_result;
}

#endif
