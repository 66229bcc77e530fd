/* As much of MPI as tutti/mpi.h uses, in this process alone: one rank, and a broadcast that can be made to fail. */
#ifndef TUTTI_TESTS_MPI_STUB_H
#define TUTTI_TESTS_MPI_STUB_H

typedef int MPI_Comm;
typedef int MPI_Datatype;
enum { MPI_SUCCESS = 0, MPI_ERR_OTHER = 15, MPI_BYTE = 1, MPI_COMM_WORLD = 0, MPI_COMM_NULL = 1 };

extern int mpi_stub_broadcast_result;

static inline int MPI_Comm_rank(MPI_Comm comm, int* rank) {
  *rank = 0;
  return comm == MPI_COMM_WORLD ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static inline int MPI_Comm_size(MPI_Comm comm, int* size) {
  *size = 1;
  return comm == MPI_COMM_WORLD ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static inline int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  (void)buffer, (void)count, (void)type, (void)root, (void)comm;
  return mpi_stub_broadcast_result;
}

#endif
