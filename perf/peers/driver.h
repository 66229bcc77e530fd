/* Common part of all drivers. A driver is one process per rank that waits, blocked in read, for commands on
 * DIR/command.RANK, runs one collective at one size, and answers on DIR/answer.RANK:
 *   run COLLECTIVE BYTES WARMUPS CALLS REPETITIONS CHECKED   ->   us per call, one per repetition, then "wrong N"
 *   quit
 * BYTES is the size of the whole vector in float32. A process that waits uses no CPU, so drivers of several libraries
 * can take turns on the same cores.
 *
 * Measured times, the same for every library:
 *   below 16 KiB    CALLS calls back to back, since a look at the clock would cost as much as a call;
 *   from 16 KiB on  each call alone and on fresh data: the rank writes all that it sends, meets the others, is timed
 * for the call only, and reads all that it received. Calls of a loop that nobody feeds leave most lines where they are,
 * and so measure a link that hardly carries anything. A time is the mean over the calls of a repetition. */
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
  int sleeps; /* Threads of the library need this core: ranks that meet there by spinning keep them from it. */
};

/* Binds the calling thread, and those that it starts, to a core; to none if it is negative. For each driver to call
 * before it makes a communicator: libraries look then at how many cores they have, and which. */
void driver_pin(int core);

/* Serves until "quit" or the end of the commands; returns main's result. */
int driver_serve(const struct driver* driver);

/* Ends the process with a sentence on stderr. */
void driver_fail(const char* format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Opens DIR/<name>.<rank>; mode as fopen's. */
struct _IO_FILE* driver_open(const struct driver* driver, const char* name, const char* mode);

/* NOLINTEND(readability-identifier-naming) */
#ifdef __cplusplus
}
#endif

#endif
