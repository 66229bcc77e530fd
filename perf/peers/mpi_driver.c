/* Driver for MPI libraries, built once with the compiler of each library.   mpi_driver DIRECTORY CORE,CORE,... */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "perf/peers/driver.h"

static int ranks;

static void run(const struct driver_call* call) {
  const int count = (int)call->count;
  switch (call->collective) {
    case all_reduce: MPI_Allreduce(MPI_IN_PLACE, call->recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
    case all_gather: MPI_Allgather(call->send, count, MPI_FLOAT, call->recv, count, MPI_FLOAT, MPI_COMM_WORLD); break;
    case broadcast: MPI_Bcast(call->recv, count, MPI_FLOAT, 0, MPI_COMM_WORLD); break;
    case all_to_all: MPI_Alltoall(call->send, count, MPI_FLOAT, call->recv, count, MPI_FLOAT, MPI_COMM_WORLD); break;
    default: { /* MPI_Reduce_scatter_block is slower in both libraries. */
      int counts[64];
      int i;
      for (i = 0; i < ranks; ++i) counts[i] = count;
      MPI_Reduce_scatter(call->send, call->recv, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
  }
}

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

static int core_of(const char* list, int rank) {
  while (rank-- > 0 && strchr(list, ',') != NULL) list = strchr(list, ',') + 1;
  return atoi(list);
}

/* Returns the rank from the launcher's environment, because MPI does not know it before MPI_Init(). */
static int rank_from_launcher(void) {
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (rank == NULL) rank = getenv("PMI_RANK");
  if (rank == NULL) driver_fail("mpi_driver: neither OMPI_COMM_WORLD_RANK nor PMI_RANK is set: start it by mpirun");
  return atoi(rank);
}

int main(int argc, char** argv) {
  struct driver driver = {NULL, 0, 0, 0, NULL, run, barrier, 0};
  int result;
  if (argc != 3) driver_fail("usage: mpi_driver DIRECTORY CORE,CORE,...");
  driver.core = core_of(argv[2], rank_from_launcher());
  driver_pin(driver.core);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &driver.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &driver.ranks);
  if (driver.ranks > 64) driver_fail("mpi_driver: at most 64 ranks");
  ranks = driver.ranks;
  driver.directory = argv[1];
  result = driver_serve(&driver);
  MPI_Finalize();
  return result;
}
