/* Code shared by all drivers. A driver has one process per rank, which blocks in read() until a command arrives on
 * DIR/command.RANK, runs one collective at one size, and answers on DIR/answer.RANK:
 *   run COLLECTIVE BYTES WARMUPS CALLS REPETITIONS CHECKED   ->   us per call, one per repetition, then "wrong N"
 *   quit
 * BYTES is the size of the whole vector of float32. A waiting process uses no CPU, so that drivers of several libraries
 * can alternate on the same cores.
 *
 * Measured times, equal for all libraries; a time is the mean over the calls of a repetition:
 *   below 16 KiB    CALLS calls back to back, since reading the clock takes as long as a call;
 *   from 16 KiB on  each call separately, on fresh data. The rank writes its input, passes a barrier, runs the timed
 * call, and reads its output. Without fresh data most cache lines would stay where they are, and the link between the
 * cores would carry almost nothing. */
#ifndef TUTTI_PERF_PEERS_DRIVER_H
#define TUTTI_PERF_PEERS_DRIVER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN(readability-identifier-naming): names of C. */
enum driver_collective { all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, collective_count };

struct driver_call {
  enum driver_collective collective;
  size_t count; /* float32 elements per block. */
  float* send;  /* all_reduce and broadcast (from rank 0) are in place: send == recv. */
  float* recv;
};

struct driver {
  const char* directory;
  int rank, ranks, core;
  void* (*allocate)(size_t bytes); /* Null: malloc. */
  void (*run)(const struct driver_call* call);
  void (*barrier)(void);
  int sleeps; /* Threads of the library need this core, so the driver must not spin in its barrier. */
};

/* Binds the calling thread, and threads that it starts, to a core; does nothing if `core` is negative. Drivers must
 * call it before they create a communicator, because libraries determine the available cores then. */
void driver_pin(int core);

/* Runs commands until "quit" or the end of the pipe. Returns the exit status of the process. */
int driver_serve(const struct driver* driver);

/* Prints a message to stderr and ends the process with status 2. */
void driver_fail(const char* format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Opens DIR/<name>.<rank>; `mode` is that of fopen(). Ends the process on errors. */
struct _IO_FILE* driver_open(const struct driver* driver, const char* name, const char* mode);

/* NOLINTEND(readability-identifier-naming) */
#ifdef __cplusplus
}
#endif

#endif
