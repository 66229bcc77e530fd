#define _XOPEN_SOURCE 600 /* For setrlimit. */
/* tutti/mpi.h as a C99 program sees it, over a stub: it compiles, makes a communicator, and tells MPI's failures apart.
 */
#include "tutti/mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

int mpi_stub_broadcast_result = MPI_SUCCESS;
int mpi_stub_rank = 0;
char mpi_stub_sent[4096];

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "not so: %s; last error: %s\n", what, tutti_last_error(NULL));
  exit(1);
}

static int says(const char* words) { return strstr(tutti_last_error(NULL), words) != NULL; }

/* Without descriptors, rank 0 makes no id. */
static void fail_on_rank_0(void) {
  tutti_comm comm = NULL;
  struct rlimit before, none;
  tutti_status status;
  getrlimit(RLIMIT_NOFILE, &before);
  none = before;
  none.rlim_cur = 0;
  setrlimit(RLIMIT_NOFILE, &none);
  status = tutti_comm_create_mpi(MPI_COMM_WORLD, NULL, &comm);
  setrlimit(RLIMIT_NOFILE, &before);
  expect(status == tutti_system_error && says("ulimit -n"), "rank 0 says why it made no id");
  mpi_stub_rank = 1;
  tutti_report("nobody", tutti_timeout, "nothing");
  expect(tutti_comm_create_mpi(MPI_COMM_WORLD, NULL, &comm) == tutti_system_error, "rank 1 hears of it");
  expect(says("rank 0: tutti_get_unique_id: ") && says("ulimit -n"), "rank 1 says why rank 0 made no id");
  mpi_stub_rank = 0;
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
  expect(says("tutti_comm_create_mpi: MPI does not say"), "MPI's failure has words");
  mpi_stub_broadcast_result = MPI_ERR_OTHER;
  expect(tutti_comm_create_mpi(MPI_COMM_WORLD, NULL, &comm) == tutti_remote_error, "an id that did not travel");
  expect(says("did not bring the unique id"), "so has that of its broadcast");
  mpi_stub_broadcast_result = MPI_SUCCESS;
  fail_on_rank_0();
  return 0;
}
