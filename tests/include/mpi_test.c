/* tutti/mpi.h in a C99 program with a stub of MPI: it compiles, creates a communicator, and reports MPI's errors.
 */
#include "tutti/mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mpi_stub_broadcast_result = MPI_SUCCESS;
int mpi_stub_rank = 0;
char mpi_stub_sent[4096];

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "not so: %s; last error: %s\n", what, tutti_last_error(NULL));
  exit(1);
}

static int says(const char* words) { return strstr(tutti_last_error(NULL), words) != NULL; }

/* If TUTTI_SECRET_FILE is /nowhere/secret, rank 0 fails to create an id. */
static int fail_on_rank_0(void) {
  tutti_comm comm = NULL;
  expect(tutti_comm_create_mpi(MPI_COMM_WORLD, NULL, &comm) == tutti_system_error, "rank 0 fails");
  expect(says("/nowhere/secret"), "it says why it made no id");
  mpi_stub_rank = 1;
  tutti_report("no_function", tutti_timeout, "nothing");
  expect(tutti_comm_create_mpi(MPI_COMM_WORLD, NULL, &comm) == tutti_system_error, "rank 1 gets an error");
  expect(says("rank 0: tutti_get_unique_id: ") && says("/nowhere/secret"), "it says why rank 0 made no id");
  return 0;
}

int main(int arguments, char** argument) {
  tutti_comm comm = NULL;
  int ranks = 0;
  float value = 3;
  (void)argument;
  if (arguments > 1) return fail_on_rank_0();
  expect(tutti_comm_create_mpi(MPI_COMM_WORLD, NULL, &comm) == tutti_ok, "a communicator of MPI's ranks is made");
  expect(tutti_comm_ranks(comm, &ranks) == tutti_ok && ranks == 1, "it has as many ranks");
  expect(tutti_all_reduce(&value, &value, 1, tutti_float32, tutti_sum, comm, NULL) == tutti_ok && value == 3,
         "it runs a collective");
  expect(tutti_comm_destroy(comm) == tutti_ok, "it is destroyed");

  expect(tutti_comm_create_mpi(MPI_COMM_NULL, NULL, &comm) == tutti_invalid_argument,
         "no communicator of MPI, no ranks");
  expect(says("tutti_comm_create_mpi: MPI_Comm_rank or MPI_Comm_size failed"), "MPI's failure has words");
  mpi_stub_broadcast_result = MPI_ERR_OTHER;
  expect(tutti_comm_create_mpi(MPI_COMM_WORLD, NULL, &comm) == tutti_remote_error, "an id that did not travel");
  expect(says("MPI_Bcast of the unique id failed"), "so has that of its broadcast");
  return 0;
}
