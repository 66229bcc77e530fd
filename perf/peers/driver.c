#define _GNU_SOURCE
#include "perf/peers/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const char* const names[collective_count] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                                    "all_to_all"};

enum { fresh_from_bytes = 16 << 10 };

struct memory {
  float *send, *recv;
  size_t bytes;
};

/* Barrier of all ranks: a counter per rank on cache lines of its own, in a file that all ranks map. */
struct barrier {
  unsigned arrived;
  char padding[124];
};
static struct barrier* barrier;

static int free_cores = 1; /* Cores that the process could use before driver_pin(). */

void driver_fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(2);
}

FILE* driver_open(const struct driver* driver, const char* name, const char* mode) {
  char path[512];
  FILE* file;
  snprintf(path, sizeof path, "%s/%s.%d", driver->directory, name, driver->rank);
  file = fopen(path, mode);
  if (file == NULL) driver_fail("%s: %s", path, strerror(errno));
  return file;
}

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static void* allocate(const struct driver* driver, size_t bytes) {
  void* memory = driver->allocate != NULL ? driver->allocate(bytes) : aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (memory == NULL) driver_fail("no memory for %zu bytes", bytes);
  memset(memory, 0, bytes);
  return memory;
}

/* Element i of a rank's input: a small integer, so that sums are exact. */
static float value(int rank, size_t i) { return (float)((i * 7 + (size_t)rank * 13) % 97); }

static float expected(const struct driver* driver, const struct driver_call* call, size_t i) {
  const size_t count = call->count;
  float sum = 0;
  int r;
  switch (call->collective) {
    case all_gather: return value((int)(i / count), i % count);
    case broadcast: return value(0, i);
    case all_to_all: return value((int)(i / count), (size_t)driver->rank * count + i % count);
    default: break;
  }
  for (r = 0; r < driver->ranks; ++r) {
    sum += value(r, call->collective == all_reduce ? i : (size_t)driver->rank * count + i);
  }
  return sum;
}

/* Number of elements that this rank sends. */
static size_t sent(const struct driver* driver, const struct driver_call* call) {
  const int sends_all = call->collective == reduce_scatter || call->collective == all_to_all;
  if (call->collective == broadcast && driver->rank != 0) return 0;
  return call->count * (size_t)(sends_all ? driver->ranks : 1);
}

static size_t received(const struct driver* driver, const struct driver_call* call) {
  const int receives_all = call->collective == all_gather || call->collective == all_to_all;
  return call->count * (size_t)(receives_all ? driver->ranks : 1);
}

static size_t check(const struct driver* driver, const struct driver_call* call) {
  size_t wrong = 0;
  size_t i;
  for (i = 0; i < received(driver, call); ++i) call->recv[i] = -1;
  for (i = 0; i < sent(driver, call); ++i) call->send[i] = value(driver->rank, i);
  driver->barrier();
  driver->run(call);
  for (i = 0; i < received(driver, call); ++i) wrong += call->recv[i] != expected(driver, call, i);
  return wrong;
}

static void map_barrier(const struct driver* driver) {
  char path[512];
  const size_t bytes = (size_t)driver->ranks * sizeof *barrier;
  int file;
  snprintf(path, sizeof path, "%s/barrier", driver->directory);
  file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0) driver_fail("%s: %s", path, strerror(errno));
  barrier = (struct barrier*)mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (barrier == MAP_FAILED) driver_fail("mapping %s: %s", path, strerror(errno));
  close(file);
}

/* Barrier that ranks leave within the latency of a cache line. It begins with the library's own barrier, because a rank
 * that waits here does not run the library, on which another rank may still depend. The library's barrier does not
 * suffice: if it sleeps or uses TCP, ranks leave it many microseconds apart. Ranks that share cores yield while they
 * wait. */
static void enter_barrier(const struct driver* driver) {
  int other;
  unsigned generation;
  driver->barrier();
  if (driver->sleeps) return;
  generation = barrier[driver->rank].arrived + 1;
  __atomic_store_n(&barrier[driver->rank].arrived, generation, __ATOMIC_RELEASE);
  for (other = 0; other < driver->ranks; ++other) {
    while ((int)(__atomic_load_n(&barrier[other].arrived, __ATOMIC_ACQUIRE) - generation) < 0) {
      if (driver->ranks > free_cores) sched_yield();
      __builtin_ia32_pause();
    }
  }
}

/* Writes fresh input, like a program that computes it. All elements are equal and differ between calls, so that
 * in-place sums neither grow from call to call nor vanish. */
static void write_input(const struct driver* driver, const struct driver_call* call, int number) {
  const size_t count = sent(driver, call);
  float* const send = call->send;
  const float fresh = (float)(1 + number % 64);
  size_t i;
  for (i = 0; i < count; ++i) send[i] = fresh;
}

/* Reads the output; the compiler cannot remove the reads. Adds integers, since the compiler may reorder and vectorize
 * their sum. */
static void read_output(const struct driver* driver, const struct driver_call* call) {
  const size_t count = received(driver, call);
  const float* const recv = call->recv;
  unsigned sum = 0;
  size_t i;
  for (i = 0; i < count; ++i) {
    unsigned bits;
    memcpy(&bits, &recv[i], sizeof bits);
    sum += bits;
  }
  __asm__ volatile("" : : "r"(sum));
}

static double time_in_a_row_us(const struct driver* driver, const struct driver_call* call, int calls) {
  double start;
  int i;
  enter_barrier(driver);
  start = now_us();
  for (i = 0; i < calls; ++i) driver->run(call);
  return (now_us() - start) / calls;
}

static double time_fresh_us(const struct driver* driver, const struct driver_call* call, int calls) {
  double sum = 0;
  int i;
  for (i = 0; i < calls; ++i) {
    double start;
    write_input(driver, call, i);
    enter_barrier(driver);
    start = now_us();
    driver->run(call);
    sum += now_us() - start;
    read_output(driver, call);
  }
  return sum / calls;
}

/* Arguments of a command, without the collective. */
struct order {
  size_t bytes;
  int warmups, calls, repetitions, checked;
};

static void answer(const struct driver* driver, const struct driver_call* call, struct order order, FILE* answers) {
  const int fresh = order.bytes >= fresh_from_bytes;
  while (order.warmups-- > 0) driver->run(call);
  while (order.repetitions-- > 0) {
    const double us = fresh ? time_fresh_us(driver, call, order.calls) : time_in_a_row_us(driver, call, order.calls);
    fprintf(answers, "%.4f ", us);
  }
  fprintf(answers, "wrong %zu\n", order.checked ? check(driver, call) : 0);
  fflush(answers);
}

void driver_pin(int core) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) free_cores = CPU_COUNT(&set);
  if (core < 0) return;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) driver_fail("binding to core %d: %s", core, strerror(errno));
}

static struct driver_call prepare(const struct driver* driver, const char* name, size_t bytes, struct memory* memory) {
  struct driver_call call = {collective_count, bytes / sizeof(float), NULL, NULL};
  int collective;
  for (collective = 0; collective < collective_count; ++collective) {
    if (strcmp(name, names[collective]) == 0) call.collective = (enum driver_collective)collective;
  }
  if (call.collective == collective_count) driver_fail("unknown collective '%s'", name);
  if (memory->bytes < bytes) { /* Old buffers are not freed: there are few sizes, in ascending order. */
    memory->send = (float*)allocate(driver, bytes);
    memory->recv = NULL;
    memory->bytes = bytes;
  }
  call.send = call.recv = memory->send;
  if (call.collective == all_reduce || call.collective == broadcast) return call;
  if (memory->recv == NULL) memory->recv = (float*)allocate(driver, memory->bytes);
  call.recv = memory->recv;
  call.count /= (size_t)driver->ranks;
  return call;
}

int driver_serve(const struct driver* driver) {
  struct memory memory = {NULL, NULL, 0};
  FILE* answers = driver_open(driver, "answer", "w");
  FILE* commands = driver_open(driver, "command", "r");
  char line[256];
  map_barrier(driver);
  fprintf(answers, "ready\n");
  fflush(answers);
  while (fgets(line, sizeof line, commands) != NULL && strcmp(line, "quit\n") != 0) {
    char name[32];
    struct order order;
    struct driver_call call;
    if (sscanf(line, "run %31s %zu %d %d %d %d", name, &order.bytes, &order.warmups, &order.calls, &order.repetitions,
               &order.checked) != 6) {
      driver_fail("invalid command: %s", line);
    }
    call = prepare(driver, name, order.bytes, &memory);
    answer(driver, &call, order, answers);
  }
  return 0;
}
