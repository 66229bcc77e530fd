/* The C API from C99: two processes, every function that a small program needs. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tutti/tutti.h"

#define RANKS 2
#define COUNT 1000

static void expect(int holds, const char* claim, int line) {
  if (holds) return;
  fprintf(stderr, "line %d: %s does not hold; last error: %s\n", line, claim, tutti_last_error(NULL));
  exit(1);
}
#define EXPECT(claim) expect((claim), #claim, __LINE__)

static void reduce_and_gather(int rank, tutti_comm comm) {
  int32_t send[RANKS * COUNT];
  int32_t recv[RANKS * COUNT];
  int i;
  for (i = 0; i < RANKS * COUNT; ++i) send[i] = i * (rank + 1);

  EXPECT(tutti_all_reduce(send, recv, COUNT, tutti_int32, tutti_sum, comm, NULL) == tutti_ok);
  for (i = 0; i < COUNT; ++i) EXPECT(recv[i] == 3 * i);
  EXPECT(tutti_reduce_scatter(send, recv, COUNT, tutti_int32, tutti_max, comm, NULL) == tutti_ok);
  for (i = 0; i < COUNT; ++i) EXPECT(recv[i] == 2 * (rank * COUNT + i));
  EXPECT(tutti_all_gather(send, recv, COUNT, tutti_int32, comm, NULL) == tutti_ok);
  for (i = 0; i < RANKS * COUNT; ++i) EXPECT(recv[i] == i % COUNT * (i / COUNT + 1));
  EXPECT(tutti_all_to_all(send, recv, COUNT, tutti_int32, comm, NULL) == tutti_ok);
  for (i = 0; i < RANKS * COUNT; ++i) EXPECT(recv[i] == (rank * COUNT + i % COUNT) * (i / COUNT + 1));
  EXPECT(tutti_broadcast(send, recv, COUNT, tutti_int32, 1, comm, NULL) == tutti_ok);
  for (i = 0; i < COUNT; ++i) EXPECT(recv[i] == 2 * i);
}

static void exchange(int rank, tutti_comm comm) {
  const double mine = rank + 0.5;
  double theirs = 0;
  tutti_stream stream = NULL;
  EXPECT(tutti_stream_create(&stream) == tutti_ok);
  EXPECT(tutti_group_start() == tutti_ok);
  EXPECT(tutti_send(&mine, 1, tutti_float64, 1 - rank, comm, stream) == tutti_ok);
  EXPECT(tutti_recv(&theirs, 1, tutti_float64, 1 - rank, comm, stream) == tutti_ok);
  EXPECT(tutti_group_end() == tutti_ok);
  EXPECT(tutti_stream_synchronize(stream) == tutti_ok);
  EXPECT(theirs == 1 - rank + 0.5);
  EXPECT(tutti_stream_destroy(stream) == tutti_ok);
}

static void reduce_in_shared_memory(int rank, tutti_comm comm) {
  void* memory = NULL;
  float* values;
  int i;
  EXPECT(tutti_mem_alloc(&memory, COUNT * sizeof(float)) == tutti_ok);
  values = (float*)memory;
  for (i = 0; i < COUNT; ++i) values[i] = (float)(i + rank);
  EXPECT(tutti_all_reduce(values, values, COUNT, tutti_float32, tutti_avg, comm, NULL) == tutti_ok);
  for (i = 0; i < COUNT; ++i) EXPECT(values[i] == (float)i + 0.5F);
  EXPECT(tutti_mem_free(memory) == tutti_ok);
}

static void be_rank(int rank, const tutti_unique_id* id) {
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  tutti_comm comm = NULL;
  int value = -1;
  options.name = "test";
  options.timeout_ms = 20000;
  options.init_timeout_ms = 20000;
  EXPECT(tutti_comm_create(id, rank, RANKS, &options, &comm) == tutti_ok);
  EXPECT(tutti_comm_rank(comm, &value) == tutti_ok && value == rank);
  EXPECT(tutti_comm_ranks(comm, &value) == tutti_ok && value == RANKS);
  reduce_and_gather(rank, comm);
  exchange(rank, comm);
  reduce_in_shared_memory(rank, comm);
  EXPECT(tutti_comm_finalize(comm) == tutti_ok);
  EXPECT(tutti_comm_destroy(comm) == tutti_ok);
}

int main(void) {
  tutti_unique_id id;
  int ends[2];
  int status = 0;
  pid_t child;
  EXPECT(tutti_version() == TUTTI_VERSION);
  EXPECT(strcmp(tutti_status_name(tutti_timeout), "timeout") == 0);
  EXPECT(pipe(ends) == 0);
  child = fork();
  EXPECT(child >= 0);
  if (child == 0) {
    EXPECT(read(ends[0], &id, sizeof id) == (ssize_t)sizeof id);
    be_rank(1, &id);
    return 0;
  }
  EXPECT(tutti_get_unique_id(&id) == tutti_ok);
  EXPECT(write(ends[1], &id, sizeof id) == (ssize_t)sizeof id);
  be_rank(0, &id);
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT(status == 0);
  return 0;
}
