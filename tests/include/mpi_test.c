/* tutti/mpi.h as a C99 program sees it, over a stub: it compiles, makes a communicator, and tells MPI's failures apart.
 */
#include "tutti/mpi.h"

#include <stdio.h>
#include <stdlib.h>

int mpi_stub_broadcast_result = MPI_SUCCESS;

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "not so: %s; last error: %s\n", what, tutti_last_error(NULL));
  exit(1);
}

int main(void) {
  tutti_comm comm = NULL;
  int ranks = 0;
  float value = 3;
  expect(tutti_comm_create_mpi(MPI_COMM_WORLD, NULL, &comm) == tutti_ok, "a communicator of MPI's ranks is made");
  expect(tutti_comm_ranks(comm, &ranks) == tutti_ok && ranks == 1, "it has as many ranks");
  expect(tutti_all_reduce(&value, &value, 1, tutti_float32, tutti_sum, comm, NULL) == tutti_ok && value == 3,
         "it runs a collective");
  expect(tutti_comm_destroy(comm) == tutti_ok, "it is destroyed");

  expect(tutti_comm_create_mpi(MPI_COMM_NULL, NULL, &comm) == tutti_invalid_argument,
         "no communicator of MPI, no ranks");
  mpi_stub_broadcast_result = MPI_ERR_OTHER;
  expect(tutti_comm_create_mpi(MPI_COMM_WORLD, NULL, &comm) == tutti_remote_error, "an id that did not travel");
  return 0;
}
