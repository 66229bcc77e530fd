/* Measures costs of Tutti outside of calls.
 *   costs_driver create RANKS    ->  ms until the last of RANKS processes has its communicator
 *   costs_driver idle SECONDS    ->  ms of CPU time per second of an idle process with one of two ranks and a used
 * stream */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "perf/peers/driver.h"
#include "tutti/tutti.h"

enum { max_ranks = 1024 };

struct shared {
  tutti_unique_id id;
  int has_id;
  int ready;
  double begun_ms, done_ms[max_ranks];
};

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void require(tutti_status status) {
  if (status != tutti_ok) driver_fail("costs_driver: %s", tutti_last_error(NULL));
}

/* Creates a communicator. Waits for all processes first, so that the time excludes starting them. */
static tutti_comm join(struct shared* shared, int rank, int ranks) {
  tutti_comm comm = NULL;
  __atomic_fetch_add(&shared->ready, 1, __ATOMIC_ACQ_REL);
  if (rank == 0) {
    while (__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) < ranks) usleep(100);
    shared->begun_ms = now_ms();
    require(tutti_get_unique_id(&shared->id));
    __atomic_store_n(&shared->has_id, 1, __ATOMIC_RELEASE);
  }
  while (__atomic_load_n(&shared->has_id, __ATOMIC_ACQUIRE) == 0) usleep(100);
  require(tutti_comm_create(&shared->id, rank, ranks, NULL, &comm));
  shared->done_ms[rank] = now_ms();
  return comm;
}

static double cpu_ms(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-3;
}

static double idle(tutti_comm comm, int seconds) {
  float one = 1;
  double before;
  tutti_stream stream = NULL;
  require(tutti_stream_create(&stream));
  require(tutti_all_reduce(&one, &one, 1, tutti_float32, tutti_sum, comm, stream));
  require(tutti_stream_synchronize(stream));
  before = cpu_ms();
  sleep((unsigned)seconds);
  before = cpu_ms() - before;
  require(tutti_stream_destroy(stream));
  return before / seconds;
}

int main(int argc, char** argv) {
  struct shared* shared =
      (struct shared*)mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const int creates = argc == 3 && strcmp(argv[1], "create") == 0;
  const int ranks = creates ? atoi(argv[2]) : 2;
  double result = 0;
  int rank = 0, other, status, failed = 0;
  tutti_comm comm;
  if (argc != 3 || ranks < 1 || ranks > max_ranks || shared == MAP_FAILED)
    driver_fail("usage: costs_driver create RANKS | idle SECONDS");
  for (other = 1; other < ranks && rank == 0; ++other) {
    if (fork() != 0) continue;
    rank = other;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* If rank 0 fails, the others would wait forever. */
  }
  comm = join(shared, rank, ranks);
  if (!creates) result = idle(comm, atoi(argv[2]));
  require(tutti_comm_destroy(comm));
  if (rank != 0) return 0;
  while (wait(&status) > 0) failed = failed || status != 0;
  for (other = 0; creates && other < ranks; ++other) {
    if (shared->done_ms[other] - shared->begun_ms > result) result = shared->done_ms[other] - shared->begun_ms;
  }
  if (failed) driver_fail("costs_driver: a rank failed");
  printf("%.3f\n", result);
  return 0;
}
