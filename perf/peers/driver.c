#define _GNU_SOURCE
#include "perf/peers/driver.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char* const names[collective_count] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                                    "all_to_all"};

struct memory {
  float *send, *recv;
  size_t bytes;
};

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

/* Small integers, so that sums are exact; element i of rank r. */
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

static size_t check(const struct driver* driver, const struct driver_call* call) {
  const int sends_all = call->collective == reduce_scatter || call->collective == all_to_all;
  const int receives_all = call->collective == all_gather || call->collective == all_to_all;
  const size_t sent = call->count * (size_t)(sends_all ? driver->ranks : 1);
  const size_t received = call->count * (size_t)(receives_all ? driver->ranks : 1);
  size_t wrong = 0;
  size_t i;
  for (i = 0; i < received; ++i) call->recv[i] = -1;
  if (call->collective != broadcast || driver->rank == 0) {
    for (i = 0; i < sent; ++i) call->send[i] = value(driver->rank, i);
  }
  driver->barrier();
  driver->run(call);
  for (i = 0; i < received; ++i) wrong += call->recv[i] != expected(driver, call, i);
  return wrong;
}

/* What a command asks for, beside the collective and its size. */
struct order {
  int calls, repetitions, checked;
};

static void answer(const struct driver* driver, const struct driver_call* call, struct order order, FILE* answers) {
  int i;
  int warmup;
  for (warmup = 0; warmup < 2; ++warmup) driver->run(call);
  while (order.repetitions-- > 0) {
    double start;
    driver->barrier();
    start = now_us();
    for (i = 0; i < order.calls; ++i) driver->run(call);
    fprintf(answers, "%.4f ", (now_us() - start) / order.calls);
  }
  fprintf(answers, "wrong %zu\n", order.checked ? check(driver, call) : 0);
  fflush(answers);
}

static void pin(int core) {
  cpu_set_t set;
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
  if (call.collective == collective_count) driver_fail("%s is no collective of the drivers", name);
  if (memory->bytes < bytes) { /* Old ones stay: there are few sizes, asked for in rising order. */
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
  pin(driver->core);
  fprintf(answers, "ready\n");
  fflush(answers);
  while (fgets(line, sizeof line, commands) != NULL && strcmp(line, "quit\n") != 0) {
    char name[32];
    size_t bytes;
    struct order order;
    struct driver_call call;
    if (sscanf(line, "run %31s %zu %d %d %d", name, &bytes, &order.calls, &order.repetitions, &order.checked) != 5) {
      driver_fail("bad command: %s", line);
    }
    call = prepare(driver, name, bytes, &memory);
    answer(driver, &call, order, answers);
  }
  return 0;
}
