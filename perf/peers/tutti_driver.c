/* Driver for Tutti.   tutti_driver DIRECTORY RANK RANKS CORE host|mapped|phases [EACH]
 * phases: an all-reduce over hosts of EACH ranks, composed of three consecutive calls: a reduce-scatter within the
 * host, an all-reduce across hosts, an all-gather within the host. Rank 0 writes the unique id to the pipe
 * DIRECTORY/id.0, once for each other rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/peers/driver.h"
#include "tutti/tutti.h"

static tutti_comm comm, inside, across;
static int each, local_rank; /* With phases: ranks per host, and index of this rank on its host. */

static void require(tutti_status status) {
  if (status != tutti_ok) driver_fail("%s", tutti_last_error(NULL));
}

/* Runs an all-reduce in three phases. The count must be divisible by the ranks of a host. */
static void run_in_phases(const struct driver_call* call) {
  const size_t shard = call->count / (size_t)each;
  float* own = call->recv + shard * (size_t)local_rank;
  require(tutti_reduce_scatter(call->send, own, shard, tutti_float32, tutti_sum, inside, NULL));
  require(tutti_all_reduce(own, own, shard, tutti_float32, tutti_sum, across, NULL));
  require(tutti_all_gather(own, call->recv, shard, tutti_float32, inside, NULL));
}

static void run(const struct driver_call* call) {
  const float* send = call->send;
  float* recv = call->recv;
  const size_t count = call->count;
  switch (call->collective) {
    case all_reduce: require(tutti_all_reduce(send, recv, count, tutti_float32, tutti_sum, comm, NULL)); break;
    case all_gather: require(tutti_all_gather(send, recv, count, tutti_float32, comm, NULL)); break;
    case broadcast: require(tutti_broadcast(send, recv, count, tutti_float32, 0, comm, NULL)); break;
    case all_to_all: require(tutti_all_to_all(send, recv, count, tutti_float32, comm, NULL)); break;
    default: require(tutti_reduce_scatter(send, recv, count, tutti_float32, tutti_sum, comm, NULL));
  }
}

static void barrier(void) {
  float one = 1;
  require(tutti_all_reduce(&one, &one, 1, tutti_float32, tutti_sum, comm, NULL));
}

static void* allocate(size_t bytes) {
  void* memory = NULL;
  require(tutti_mem_alloc(&memory, bytes));
  return memory;
}

static void exchange(const struct driver* driver, tutti_unique_id* id) {
  struct driver root = *driver;
  FILE* pipe;
  int other;
  root.rank = 0;
  if (driver->rank == 0) require(tutti_get_unique_id(id));
  pipe = driver_open(&root, "id", driver->rank == 0 ? "w" : "r");
  setvbuf(pipe, NULL, _IONBF, 0); /* A reader must not read the ids of others. */
  for (other = 1; driver->rank == 0 && other < driver->ranks; ++other) fwrite(id, sizeof *id, 1, pipe);
  if (driver->rank != 0 && fread(id, sizeof *id, 1, pipe) != 1) driver_fail("tutti_driver: no unique id was received");
  fclose(pipe);
}

static void part(int rank) {
  local_rank = rank % each;
  require(tutti_comm_split(comm, rank / each, rank, NULL, &inside));
  require(tutti_comm_split(comm, local_rank, rank, NULL, &across));
}

int main(int argc, char** argv) {
  struct driver driver = {NULL, 0, 0, 0, NULL, run, barrier, 0};
  tutti_unique_id id;
  int result;
  if (argc < 6) driver_fail("usage: tutti_driver DIRECTORY RANK RANKS CORE host|mapped|phases [EACH]");
  driver.directory = argv[1];
  driver.rank = atoi(argv[2]);
  driver.ranks = atoi(argv[3]);
  driver.core = atoi(argv[4]);
  if (strcmp(argv[5], "mapped") == 0) driver.allocate = allocate;
  if (strcmp(argv[5], "phases") == 0) {
    each = argc > 6 ? atoi(argv[6]) : 0;
    if (each < 1 || driver.ranks % each != 0)
      driver_fail("tutti_driver: %d ranks per host do not divide %d ranks", each, driver.ranks);
    driver.run = run_in_phases;
  }
  driver_pin(driver.core);
  exchange(&driver, &id);
  require(tutti_comm_create(&id, driver.rank, driver.ranks, NULL, &comm));
  if (each > 0) part(driver.rank);
  result = driver_serve(&driver);
  if (each > 0) require(tutti_comm_destroy(across));
  if (each > 0) require(tutti_comm_destroy(inside));
  require(tutti_comm_destroy(comm));
  return result;
}
