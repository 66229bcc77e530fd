/* Adds the numbers of all ranks of an MPI program. Start it with mpirun -n 4 build-mpi/ranks_of_mpi */
#include <stdio.h>
#include <stdlib.h>

#include <tutti/mpi.h>

static void check(tutti_status status) {
  if (status == tutti_ok) return;
  fprintf(stderr, "%s: %s\n", tutti_status_name(status), tutti_last_error(NULL));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  tutti_comm comm = NULL;
  check(tutti_comm_create_mpi(MPI_COMM_WORLD, NULL, &comm)); /* The ranks have the same numbers as in MPI. */
  int rank = 0;
  int ranks = 0;
  check(tutti_comm_rank(comm, &rank));
  check(tutti_comm_ranks(comm, &ranks));

  int sum = rank;
  check(tutti_all_reduce(&sum, &sum, 1, tutti_int32, tutti_sum, comm, NULL));
  printf("rank %d of %d: the sum is %d\n", rank, ranks, sum);

  check(tutti_comm_destroy(comm));
  MPI_Finalize();
  return sum == ranks * (ranks - 1) / 2 ? 0 : 1;
}
