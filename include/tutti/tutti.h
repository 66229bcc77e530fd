/* Tutti: collective communication. The whole public API, in C99.
 *
 * Conventions
 *   Every function that can fail returns a tutti_status; tutti_last_error() has the sentence that goes with it. Outputs
 *   are the last arguments, and are written only on success, unless said otherwise.
 *   Counts are in elements, sizes in bytes, times in milliseconds. Ranks count from 0.
 *   A handle (of a comm, stream, event or window) is never dereferenced by the caller. A destroyed, null or garbage one
 *   is answered with tutti_invalid_argument. After fork(), the handles of the parent are invalid in the child.
 *   Options are structs that begin with their size, so that later versions can add fields: start from the
 *   ..._DEFAULT initialiser. A null pointer to options means the default ones.
 *   Strings that are passed in are copied during the call.
 *
 * Threads
 *   A communicator is used by one thread at a time, and all ranks make the same calls in the same order; "Collectives"
 *   says what becomes of calls that do not match. Its calls run one after the other in the order in which they were
 *   made, also those in different streams; what has to run beside each other goes into one group. To notice two threads
 *   in one communicator at once would slow down every small call, so nothing does: their results are undefined.
 *   Different communicators are independent. Any thread may call tutti_comm_abort, tutti_comm_async_error and
 *   tutti_last_error at any time, and use streams and events.
 *   pthread_cancel of a thread in a call takes effect after the call has returned; asynchronous cancellation is not
 *   supported.
 *   tutti_comm_destroy waits for all ranks: a thread that drives several calls it for all of them in one group, and
 *   ranks that share several communicators end these in the same order, or in one group.
 *
 * Blocking
 *   A collective with a null stream blocks the calling thread until this rank's part is done: its input may be
 *   overwritten and its output read. With a stream it returns at once. No wait for a peer is unbounded: each ends
 *   when the communicator's timeout passes, unless that is -1, when it is aborted, or when a peer dies. What waits for
 *   calls in streams (synchronizing, a blocking call behind them) ends when they do. */
#ifndef TUTTI_TUTTI_H
#define TUTTI_TUTTI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUTTI_VERSION_MAJOR 0
#define TUTTI_VERSION_MINOR 1
#define TUTTI_VERSION_PATCH 0
#define TUTTI_VERSION (TUTTI_VERSION_MAJOR * 10000 + TUTTI_VERSION_MINOR * 100 + TUTTI_VERSION_PATCH)

#if defined(__GNUC__)
#define TUTTI_API __attribute__((visibility("default")))
#else
#define TUTTI_API
#endif

/* ---- Status ------------------------------------------------------------------------------------------------------ */

typedef enum {
  tutti_ok = 0,
  tutti_invalid_argument = 1, /* A value that can never be right: a null buffer, an unknown type. */
  tutti_invalid_usage = 2,    /* A right value at the wrong time, or ranks that disagree on a call. */
  tutti_system_error = 3,     /* The operating system refused; the sentence carries its reason. */
  tutti_remote_error = 4,     /* A peer died or failed; the sentence names its rank. */
  tutti_timeout = 5,          /* A deadline passed; the sentence names whom we waited for. */
  tutti_aborted = 6,          /* The communicator was aborted, here or by a peer. */
  tutti_unsupported = 7,      /* Right, but not built, or not on this machine. */
  tutti_internal_error = 8,   /* A bug of the library. */
  tutti_in_progress = 9       /* Not a failure: not finished yet. Only from queries. */
} tutti_status;

/* "invalid argument"; never null. */
TUTTI_API const char* tutti_status_name(tutti_status status);

/* With a communicator: what made it fail, or "" while it is well; valid until the communicator is destroyed.
 * With null: why the calling thread's last failing call failed; valid until that thread's next failing call. */
struct tutti_comm_handle;
typedef struct tutti_comm_handle* tutti_comm;
TUTTI_API const char* tutti_last_error(tutti_comm comm);

/* Makes "function: message" the calling thread's last error, and returns the status: for functions that are written on
 * top of these, as in tutti/mpi.h. */
TUTTI_API tutti_status tutti_report(const char* function, tutti_status status, const char* message);

/* TUTTI_VERSION of the library that is loaded. */
TUTTI_API int tutti_version(void);

/* ---- Communicators ----------------------------------------------------------------------------------------------- */

/* Names a communicator to be, and carries a secret: 128 bytes that one rank makes and brings to the others. */
typedef struct {
  char bytes[128];
} tutti_unique_id;

/* From `algorithm` on they are for measuring, and for a machine on which the tuner chooses badly: programs leave them
 * unset. "" is the same as null in all of them. */
typedef struct {
  size_t size;        /* sizeof(tutti_comm_options) */
  const char* name;   /* In messages: "gradients". Null: none; of a split its parent's and the colour, of a shrink its
                         parent's and how many are left. Only at creation. */
  int64_t timeout_ms; /* Longest wait of an operation. 0: TUTTI_TIMEOUT_MS, or 10 minutes. -1: none. */
  int64_t init_timeout_ms; /* Longest wait for ranks to join. 0: TUTTI_INIT_TIMEOUT_MS, or 2 minutes.
                              -1: none. Other negative times are refused. In options of a split, a shrink or of another
                              handle, 0 means what is inherited. In the two variables 0 is none, and so is -1. */
  const char* algorithm;   /* Of all collectives that have one of this name: "ring"; tutti_algorithms lists them. Null:
                              TUTTI_ALGORITHM, or the tuner's choice. A name that none has is refused, also in the
                              environment; a collective that has none of it gets the tuner's choice. One that ends
                              in _mapped works in memory of tutti_mem_alloc: where any rank passes other buffers, the
                              call is tutti_invalid_argument on all, and the communicator stays well. Ranks that are
                              all threads of one process may pass any. */
  const char* protocol;    /* "LL": each cache line carries its flag, for small messages; "Simple": a counter says
                              so of many, for large ones; "LL128": on GPUs, each 128 bytes do, for those in between.
                              Null: TUTTI_PROTOCOL, or the tuner's choice. */
  const char* transport;   /* What carries messages: "shm" between the ranks of one host; "tcp" between hosts, or, where
                              it is asked for, between all ranks; "verbs", by RDMA, and "ucx" between all. Null:
                              TUTTI_TRANSPORT, or shm within a host, and between hosts verbs where all ranks have devices
                              for it that are not made of software, else tcp. Only at creation. */
  const char* compression; /* How float32, float16 and bfloat16 travel in collectives: "raw", as they
                       are, or rounded to a narrower format, in which all ranks still end with the same bits:
                       "bf16", "fp16", "int8", "int8_b32", "int6", "int4", "fp8_e4m3", "fp8_e5m2", "mxfp8". Sums
                       are made in float32. docs/reference/compression-formats.md
                       specifies the formats and their errors. Other types
                       travel as they are, and so do blocks that a format would not make narrower. Null:
                       TUTTI_COMPRESS, or raw. On GPUs with Simple only. */
  uint32_t channels;       /* Copies of the plan that share the work. 0: the tuner's choice. On host memory, more than
                              1 is tutti_unsupported for now. */
  const char* memory;      /* Where buffers lie: "host"; "cuda", on the GPU that is current in the thread that creates
                              the communicator; or "cuda:1", on that one. See "GPUs". Null: host, or what is
                              inherited. Parts of a split lie where their parent does. */
  double max_relative_error; /* Instead of a format, above 0 and below 1: each call travels in what is predicted to be
                              quickest of the formats that are expected to keep to it, or raw; never in fp16 or int4.
                              The error is what tutti_comm_last_compression expects. It is known of sums, averages and
                              copies: min, max and prod travel raw. On GPUs by estimates, which nobody has measured. Not
                              with stochastic rounding. 0: TUTTI_MAX_RELATIVE_ERROR, or no such bound. */
  const char*
      compression_rounding;  /* Of what travels in a narrower format: "nearest", or "stochastic", by random numbers, so
                         that the mean of many results is right, but for the largest elements of blocks, of
                         which mxfp8 cuts many off; each rank may choose. The same seed, rank and call, counted
                         per communicator, give the same bits. All ranks end with the same ones either way. Null:
                         TUTTI_COMPRESS_ROUNDING, or nearest. A graph draws other numbers each time it runs. */
  uint64_t compression_seed; /* Of these numbers. 0: TUTTI_COMPRESS_SEED, or 0. */
} tutti_comm_options;

#define TUTTI_COMM_OPTIONS_DEFAULT \
  { sizeof(tutti_comm_options), NULL, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, 0, NULL, 0 }

/* Makes an id and begins to listen for the ranks that will use it: the process stays up until they have joined. An id
 * that they never use keeps its descriptors and its thread until the process ends. */
TUTTI_API tutti_status tutti_get_unique_id(tutti_unique_id* id);

/* Joins as `rank` of `ranks`, at most 65,536; blocks until all have joined. `comm` is written as soon as the arguments
 * are found good, so that another thread can abort the wait; until then tutti_comm_async_error says tutti_in_progress.
 * On failure it is null again. Every rank passes options that mean the same. Programs with MPI find
 * tutti_comm_create_mpi in tutti/mpi.h, which does this for the ranks of an MPI_Comm. */
TUTTI_API tutti_status tutti_comm_create(const tutti_unique_id* id, int rank, int ranks,
                                         const tutti_comm_options* options, tutti_comm* comm);

/* All ranks in this process: comms[i] is rank i's, to be used by a thread of its own, or with others' in a group, as
 * which one thread also destroys them. They take about ranks * ranks descriptors, and each split into one part as many
 * again: 31 ranks are what the usual limit allows (ulimit -n: 1,024). Raise it, or make more ranks processes. */
TUTTI_API tutti_status tutti_comm_create_all(int ranks, const tutti_comm_options* options, tutti_comm* comms);

/* Like tutti_comm_create, with rank, ranks and rendezvous from the variables of torchrun, Open MPI, MPICH (PMI) or
 * Slurm; creates a communicator of one rank if none of these is set. A rank without the number of ranks (RANK without
 * WORLD_SIZE), or the reverse, is an error. Under srun on several hosts, rank 0 listens on the first host of
 * SLURM_STEP_NODELIST. Ranks started by hand set TUTTI_RANK and TUTTI_RANKS; ranks that no common process of one host
 * started, for example in several shells, also set TUTTI_ROOT=host:port, where rank 0 will listen.
 * tutti_comm_launcher returns which variables were used: "torchrun (RANK, WORLD_SIZE, MASTER_ADDR)", or "" without a
 * launcher; the text lives as long as the communicator. */
TUTTI_API tutti_status tutti_comm_create_from_environment(const tutti_comm_options* options, tutti_comm* comm);
TUTTI_API tutti_status tutti_comm_launcher(tutti_comm comm, const char** launcher);

/* Parts the ranks by colour, orders each part by key, then by rank. Every rank of `comm` calls it; one that passes
 * TUTTI_COLOR_NONE gets a null communicator. Unset options are inherited. Blocks. */
#define TUTTI_COLOR_NONE (-1)
TUTTI_API tutti_status tutti_comm_split(tutti_comm comm, int color, int key, const tutti_comm_options* options,
                                        tutti_comm* part);

/* A communicator of all ranks of `comm` but excluded[count], in the same order, for those that go on after some have
 * died or hang. Only the ranks that stay call it, each with the same list, in any order; the others take no part: they
 * may be dead, stopped or in a call. `comm` may have failed or been aborted, and may be well; it is left as it was: one
 * that is well can still be used, with all its ranks, and shrunk again; one that has failed can only be shrunk and
 * destroyed. A rank that hangs in a call on `comm` is let go by tutti_comm_abort(comm), which may come before this, and
 * after which destroying `comm` waits for no rank to do the same (but see "GPUs"). With no ranks to exclude (count
 * 0) all go on.
 * Blocks until this rank's calls in streams are done, and until all that stay have come; after init_timeout_ms it fails
 * and says which have not. Ranks that pass different lists are shown both. Where it fails on one rank it fails on all
 * that wait for it, and may be called again, also with another list. Unset options are inherited. `part` is written
 * early, so that another thread can abort the wait, by tutti_comm_abort of either; on failure it is null again. */
TUTTI_API tutti_status tutti_comm_shrink(tutti_comm comm, const int* excluded, int count,
                                         const tutti_comm_options* options, tutti_comm* part);

/* Another handle to the same communicator, whose calls use these options; unset ones are inherited. Talks to nobody
 * and costs nothing per call: make one per tuning and keep it. It dies with `comm`, or alone by tutti_comm_destroy. */
TUTTI_API tutti_status tutti_comm_with_options(tutti_comm comm, const tutti_comm_options* options, tutti_comm* view);

TUTTI_API tutti_status tutti_comm_rank(tutti_comm comm, int* rank);
TUTTI_API tutti_status tutti_comm_ranks(tutti_comm comm, int* ranks);
/* The GPU that its buffers lie on, as CUDA counts in this process; -1: they lie in host memory. */
TUTTI_API tutti_status tutti_comm_device(tutti_comm comm, int* device);

/* What this rank's last collective on `comm` ran as, whichever handle it came through: names for options.algorithm and
 * options.protocol, which live as long as the library. "" where there was nothing to do, or nothing to carry in
 * messages. send, recv and all_to_all_v have neither, and change nothing. Of a call in a stream, when that is done. */
TUTTI_API tutti_status tutti_comm_last_choice(tutti_comm comm, const char** algorithm, const char** protocol);

/* How the elements of that collective travelled, as a name for options.compression, which lives as long as the library;
 * and the error that is to be expected of its results: the root of the mean square of the errors over that of the
 * results, if these are sums of independent Gaussian numbers. 0 for "raw". */
TUTTI_API tutti_status tutti_comm_last_compression(tutti_comm comm, const char** compression, double* error);

/* What compression formats have saved this rank since `comm` was made, whichever handle its calls came through: bytes
 * of what it sent in messages in rounded calls. Calls count when they begin, on GPUs when they are enqueued, and
 * replays of graphs do not. Begin with TUTTI_COMPRESSION_STATISTICS_DEFAULT. */
typedef struct {
  size_t size;            /* sizeof(tutti_compression_statistics) */
  uint64_t rounded_calls; /* Collectives whose elements travelled in a compression format, */
  uint64_t
      raw_calls; /* and all others, with those that the library makes of its own: of splits, and on GPUs of joining. */
  uint64_t element_bytes; /* As they are in memory, */
  uint64_t message_bytes; /* and as they travelled. */
} tutti_compression_statistics;
#define TUTTI_COMPRESSION_STATISTICS_DEFAULT \
  { sizeof(tutti_compression_statistics), 0, 0, 0, 0 }
TUTTI_API tutti_status tutti_comm_compression_statistics(tutti_comm comm, tutti_compression_statistics* statistics);

/* The names of the algorithms that a collective has: of "all_gather", "bruck, direct, ...". Some are for ranks of
 * several hosts, or for certain numbers of ranks. They live as long as the library. */
TUTTI_API tutti_status tutti_algorithms(const char* collective, const char** names);

/* Waits until this rank's calls so far are done, in whatever streams, and tells what made the communicator fail, if
 * anything did. It does not see the calls of an open group, nor the replays of graphs. */
TUTTI_API tutti_status tutti_comm_synchronize(tutti_comm comm);

/* Waits until all that was enqueued is done, here and on the peers: for all ranks to finalize or destroy theirs. Only
 * queries and destroy may follow. Within a group it is done at the group's end, after the group's calls. Where a
 * message was sent that its receiver never asked for, its sender is told here, by tutti_invalid_usage, and where they
 * share memory the receiver, too; so they are by destroy. */
TUTTI_API tutti_status tutti_comm_finalize(tutti_comm comm);

/* Finalizes if need be, and so waits for all ranks to do the same; then frees. One thread that drives several ranks
 * destroys them in a group, which does it at its end: one after the other, the first would wait for the others until
 * the timeout. Refused while the ranks are joining: the handle then stays as it is. Otherwise it is invalid from then
 * on, whatever is returned: a failure of the communicator that the caller has not heard of is told here at the latest.
 * Null is allowed. */
TUTTI_API tutti_status tutti_comm_destroy(tutti_comm comm);

/* As tutti_comm_destroy, but waits for no peer, only until this rank's calls in streams are done, and after a failure
 * for up to a second where ranks work in each other's buffers: for programs that end their communicators one after the
 * other, each process in another order. The peers finish the calls in which this rank has done its part, and may go on
 * with send and recv among themselves; what needs more of it fails. */
TUTTI_API tutti_status tutti_comm_leave(tutti_comm comm);

/* Ends every wait of the communicator, here and on the peers, with tutti_aborted; returns at once. The communicator
 * still wants to be destroyed, which then waits for no rank to do the same (but see "GPUs"). */
TUTTI_API tutti_status tutti_comm_abort(tutti_comm comm);

/* Writes tutti_ok, or what made the communicator fail, be it by a call or by the death of a peer while idle. Failure is
 * final: destroy the communicator and make a new one, or go on without some ranks by tutti_comm_shrink. */
TUTTI_API tutti_status tutti_comm_async_error(tutti_comm comm, tutti_status* error);

/* ---- Elements and reductions ------------------------------------------------------------------------------------- */

typedef enum {
  tutti_int8 = 0,
  tutti_uint8,
  tutti_int16,
  tutti_uint16,
  tutti_int32,
  tutti_uint32,
  tutti_int64,
  tutti_uint64,
  tutti_float16,
  tutti_bfloat16,
  tutti_float32,
  tutti_float64,
  tutti_float8_e4m3,
  tutti_float8_e5m2
} tutti_type;

/* Floats of 16 and 8 bits: each step of an algorithm folds what it has at hand in float32 and rounds once; between
 * steps values travel in the element type, so a result may be rounded up to once per rank. All ranks of an all-reduce
 * end with the same bits, and so does every run of the same call with the same options, unless TUTTI_TUNE=1 lets sums
 * of floats try algorithms that add up in another order. */
enum {
  tutti_sum = 0, /* Of integers, sums and products wrap around. */
  tutti_prod,
  tutti_min, /* Of floats, min and max are NaN where any is, and -0 is less than 0. */
  tutti_max,
  tutti_avg /* Sum, which wraps or overflows like any, then divided by the ranks; integers truncate towards zero. */
};
typedef int32_t tutti_reduction; /* One of the above, or made by the next function. */

/* A reduction that multiplies this rank's input by *scalar, an element of `type`, then sums. Calls of this type on this
 * communicator may use it. A call that was made keeps the scalar: the reduction may be destroyed right after. */
TUTTI_API tutti_status tutti_reduction_create_pre_mul_sum(const void* scalar, tutti_type type, tutti_comm comm,
                                                          tutti_reduction* reduction);
/* The same with a scalar that is read each time a call runs, in its turn in its stream, where a graph is replayed too:
 * an aligned element in memory that the communicator's buffers may lie in. It stays there until the calls are done; the
 * reduction may be destroyed before. */
TUTTI_API tutti_status tutti_reduction_create_pre_mul_sum_at(const void* scalar, tutti_type type, tutti_comm comm,
                                                             tutti_reduction* reduction);
TUTTI_API tutti_status tutti_reduction_destroy(tutti_reduction reduction, tutti_comm comm);

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

/* A null stream blocks; otherwise see "Streams". n is the number of ranks.
 * In place means the overlap that each function states; any other overlap of send and recv is undefined.
 * A collective of no elements does nothing and touches no buffer, which may be null. One rank copies or reduces alone.
 * Buffers that a rank does not use may be null. After an error, outputs are undefined.
 * Ranks that are threads of one process, and memory of tutti_mem_alloc and tutti_mem_register, are read and written in
 * place by other ranks. A call that fails waits up to a second for them to leave its buffers. A rank that stays longer
 * may still read and write them; it does not return tutti_ok. That is one that is stopped, or one in the middle of a
 * copy or sum, which nothing interrupts: of some GB, these take longer than a second.
 * If the calls of ranks do not match (collective, count, type, reduction, root, order), the ranks fail with both calls
 * in the message. A rank whose call waits for no other rank (tutti_send, the root of a broadcast, a sender of a reduce
 * or gather, a call without elements) may return tutti_ok before that; its next call, tutti_comm_async_error and
 * destroy report the failure, or only destroy if the two ranks are on different hosts and each only sends to the other.
 * A collective against a send or recv is found on one host; ranks of different hosts wait until the timeout. */
struct tutti_stream_handle;
typedef struct tutti_stream_handle* tutti_stream;

/* recv[count] = the reduction of all ranks' send[count]. In place: send == recv. */
TUTTI_API tutti_status tutti_all_reduce(const void* send, void* recv, size_t count, tutti_type type,
                                        tutti_reduction reduction, tutti_comm comm, tutti_stream stream);

/* recv[n * count] = every rank's send[count], by rank. In place: send == recv + rank * count. */
TUTTI_API tutti_status tutti_all_gather(const void* send, void* recv, size_t count, tutti_type type, tutti_comm comm,
                                        tutti_stream stream);

/* recv[count] = the reduction of block `rank` of all ranks' send[n * count]. In place: recv == send + rank * count. */
TUTTI_API tutti_status tutti_reduce_scatter(const void* send, void* recv, size_t count, tutti_type type,
                                            tutti_reduction reduction, tutti_comm comm, tutti_stream stream);

/* recv[count] = the root's send[count]. send is used on the root only. In place: send == recv. */
TUTTI_API tutti_status tutti_broadcast(const void* send, void* recv, size_t count, tutti_type type, int root,
                                       tutti_comm comm, tutti_stream stream);

/* The root's recv[count] = the reduction of all ranks' send[count]. recv is used on the root only.
 * In place on the root: send == recv. */
TUTTI_API tutti_status tutti_reduce(const void* send, void* recv, size_t count, tutti_type type,
                                    tutti_reduction reduction, int root, tutti_comm comm, tutti_stream stream);

/* Block j of rank i's send[n * count] becomes block i of rank j's recv[n * count]. In place: send == recv. */
TUTTI_API tutti_status tutti_all_to_all(const void* send, void* recv, size_t count, tutti_type type, tutti_comm comm,
                                        tutti_stream stream);

/* The same with blocks of their own length and place: block j is send_counts[j] elements from
 * send + send_displacements[j]. All four arrays have n entries and are copied during the call. What i sends to j must
 * be what j receives from i. Not in place. */
TUTTI_API tutti_status tutti_all_to_all_v(const void* send, const size_t* send_counts, const size_t* send_displacements,
                                          void* recv, const size_t* recv_counts, const size_t* recv_displacements,
                                          tutti_type type, tutti_comm comm, tutti_stream stream);

/* The root's recv[n * count] = every rank's send[count], by rank. In place on the root: send == recv + root * count. */
TUTTI_API tutti_status tutti_gather(const void* send, void* recv, size_t count, tutti_type type, int root,
                                    tutti_comm comm, tutti_stream stream);

/* recv[count] = block `rank` of the root's send[n * count]. In place on the root: recv == send + root * count. */
TUTTI_API tutti_status tutti_scatter(const void* send, void* recv, size_t count, tutti_type type, int root,
                                     tutti_comm comm, tutti_stream stream);

/* The peer's n-th send to this rank meets this rank's n-th recv from it; counts and types must be equal, and zero is a
 * message too. Either may block until the other is there: exchanges between ranks belong in a group. A send that
 * returns tutti_ok is done with its buffer; it does not say that the message was received. Some wait where they can be
 * taken: for now, once the peer has received one, 512 KiB or 8 messages of each pair. What a rank sends to itself it
 * receives in the same group, between the same collectives: anything else is tutti_invalid_usage. */
TUTTI_API tutti_status tutti_send(const void* send, size_t count, tutti_type type, int peer, tutti_comm comm,
                                  tutti_stream stream);
TUTTI_API tutti_status tutti_recv(void* recv, size_t count, tutti_type type, int peer, tutti_comm comm,
                                  tutti_stream stream);

/* Calls between start and the outermost end only enqueue; the end runs them together, so that no send waits for a recv
 * behind it, and one thread can drive several ranks. Groups belong to the calling thread. A collective, send, recv,
 * finalize or destroy that is refused is reported by itself and by the end, which then runs no call: the communicators
 * of the other calls fail, behind what they were given before the group, so that no peer waits for them: here for that
 * reason, on the peers with tutti_remote_error. That of the refused call, if it has no other in the group, stays well,
 * and its peers wait for the call to be made. Of any other function that fails the group takes no notice. What a stream
 * is asked for within a group (record, wait, query, synchronize) does not see the group's calls, which are queued at
 * its end. Communicators are not created, split or shrunk within a group; finalized and destroyed they are at its end,
 * after all its calls, even those that were made later, and even if those fail or do not run. The end blocks if a call
 * had a null stream, or if it ends communicators. */
TUTTI_API tutti_status tutti_group_start(void);
TUTTI_API tutti_status tutti_group_end(void);

/* In the place of the outermost tutti_group_end: runs none of the group, whose communicators are as if nothing of it
 * had been asked for, and says how long the model of the tuner predicts its calls to take, in microseconds: those of a
 * communicator one after the other, different communicators side by side, on ranks that come at the same time and share
 * their cores and links with nobody else. An empty group takes 0. It speaks with no peer, so that ranks may ask by
 * themselves, and does not block. What a machine is like is known roughly: see `tutti explain`, and measure where it
 * counts. tutti_unsupported: the group has messages (send, recv, all_to_all_v), or a call with a forced algorithm that
 * does not do it, of which nothing is predicted. tutti_invalid_usage: no group is open, or several are, which then stay
 * open, as does one where time_us is null, which is tutti_invalid_argument. A call of the group that was refused is
 * told again, and its group is over; no other communicator fails for it.
 */
TUTTI_API tutti_status tutti_group_simulate_end(double* time_us);

/* ---- Streams and events ------------------------------------------------------------------------------------------ */

/* A stream is a queue whose work a thread of the library does in order, beside the caller's. Several are independent
 * where their communicators are: a call waits for those that its communicator was given before it, in any stream.
 * Buffers stay untouched until the work is done. What fails in a stream is told by its next synchronize, and by
 * tutti_comm_async_error. Any thread may use a stream. An idle stream uses no CPU. */
TUTTI_API tutti_status tutti_stream_create(tutti_stream* stream);
TUTTI_API tutti_status tutti_stream_destroy(tutti_stream stream); /* Synchronizes first. Null is allowed. */
TUTTI_API tutti_status tutti_stream_synchronize(tutti_stream stream);
/* tutti_in_progress until all is done; then what failed. It is not forgotten: the next synchronize tells it as well. */
TUTTI_API tutti_status tutti_stream_query(tutti_stream stream);

/* A mark in a stream. Recording again moves it; one never recorded counts as reached. */
struct tutti_event_handle;
typedef struct tutti_event_handle* tutti_event;
TUTTI_API tutti_status tutti_event_create(tutti_event* event);
TUTTI_API tutti_status tutti_event_destroy(tutti_event event); /* Waits in flight keep their mark. Null is allowed. */
TUTTI_API tutti_status tutti_event_record(tutti_event event, tutti_stream stream);
TUTTI_API tutti_status tutti_stream_wait(tutti_stream stream, tutti_event event); /* Later work waits for the mark. */
TUTTI_API tutti_status tutti_event_synchronize(tutti_event event);
TUTTI_API tutti_status tutti_event_query(tutti_event event); /* tutti_in_progress until the mark is reached. */

/* ---- GPUs -------------------------------------------------------------------------------------------------------- */

/* A communicator with options.memory "cuda" takes buffers that its GPU reaches, and where a stream is asked for, a
 * cudaStream_t of that GPU, cast: (tutti_stream)cuda_stream. Null is CUDA's legacy default stream. Buffers are aligned
 * to their elements. A call returns when it is enqueued, and waits for no peer, with these exceptions: creating,
 * splitting, shrinking, synchronizing, finalizing and destroying. It runs after what is in its stream, and before what
 * is put there later. Calls of one communicator run in the order in which they were made, whatever their streams; those
 * of a group run side by side where they are of different communicators, and its messages after its collectives. Calls
 * in a stream that is being captured become part of the graph. The program keeps replays of a graph and other calls of
 * the same communicator apart, and what a graph may replay stays allocated until the communicator ends. A call that
 * waits too long, or for a peer that made another one, ends, and the communicator fails: that is told by
 * tutti_comm_async_error, by later calls and by destroy; outputs are undefined from there on.
 * Where ranks work in each other's buffers (on one GPU in one process, and in windows), others may still be there after
 * a failure. tutti_comm_synchronize, tutti_window_deregister, shrink, destroy and leave wait for them to go, for up to
 * a second in all, counted from when the first rank waits: free or reuse the buffers when one of these has returned. A
 * process that is stopped may stay longer.
 * Ranks are threads of one process, or driven by one thread in groups, or in several processes, on one host or several:
 * then a thread of the communicator carries what goes between hosts, through host memory or, by RDMA devices that reach
 * it, from GPU to GPU (TUTTI_GPUDIRECT). GPUs of a host that do not reach each other, or only from CPU to CPU
 * (TUTTI_P2P_LEVEL), talk through host memory; TUTTI_LOG=info shows which. Where that is so, or ranks are in several
 * processes, 90 ranks are the most. Ranks may share a GPU. Then their calls wait for each other there, so all must be
 * able to run at the same time: in streams of their own, made not to wait for the default stream, or in one group, and
 * with CUDA_DEVICE_MAX_CONNECTIONS at least the number of threads that launch them. While they wait, nothing of the
 * process should wait for the whole GPU: set CUDA_MODULE_LOADING=EAGER, and free memory when calls are done. Groups are
 * of the same form on all ranks of the communicators in them. Where a GPU is shared by several processes, MPS lets
 * their calls run side by side. Without it none waits for a peer on the GPU: a thread of the library launches a call
 * again and again, each time for as long as it gets ahead, and holds its stream meanwhile.
 * What waits for the whole GPU while calls are under way, as cudaFree, cudaFreeHost and cudaDeviceSynchronize may, can
 * hold up these launches, and then waits until the communicator fails: by an abort or, two seconds late, at the
 * deadline of the calls. All of this is slower; nvidia-cuda-mps-control -d starts MPS. */

/* The GPU that options.memory "cuda" means in the calling thread, as CUDA counts. It is left untouched. */
TUTTI_API tutti_status tutti_current_device(int* device);

/* Shows memory of this rank's GPU, of cudaMalloc or tutti_mem_alloc_cuda, to the others, which then work in it where it
 * lies, from other processes and GPUs too. Every rank calls it, in a thread of its own; blocks until all have. The
 * window is null on all, and calls go on as without, on host memory, beyond 63 windows, and where memory cannot be
 * shown (of pools) or has no TUTTI_WINDOW_SYMMETRIC. That is a promise: of each all_reduce, all_gather, reduce_scatter,
 * all_to_all, send and recv lie in windows of `comm` on all ranks, or on none both do; where in them may differ. To
 * break it is tutti_invalid_usage, which names a rank. A window ends with `comm` at the latest. */
#define TUTTI_WINDOW_SYMMETRIC 1u
typedef struct tutti_window_handle* tutti_window;
TUTTI_API tutti_status tutti_window_register(void* memory, size_t size, uint32_t flags, tutti_comm comm,
                                             tutti_window* window);

/* Every rank calls it, in the same order; no graph with calls in the window is replayed any more. Waits for this rank's
 * calls so far and, where each rank is a process, for all ranks: then the memory may be freed. Ranks of one process
 * free theirs when it has returned on all, of all processes. After a failure it says so when the others have left
 * the memory, or after a second: see "GPUs". */
TUTTI_API tutti_status tutti_window_deregister(tutti_window window, tutti_comm comm);

/* ---- Error feedback ---------------------------------------------------------------------------------------------- */

/* From here on, what narrow formats take from sums and averages of buffer[count] is kept in residual[count], memory of
 * the caller's, and is part of the next ones: so sums of many steps do not drift. A rank's own business: others may do
 * without. It takes part in all_reduce, reduce_scatter and reduce with tutti_sum and tutti_avg whose `send` lies in the
 * buffer, in all of it or in a part, through any handle to `comm`, in place or not, and that do not travel raw; all
 * others leave it alone. It is in units of `send`, also of an average.
 *   The library reads and writes the residual in these calls alone. Fill it with zeros at first; save it with the state
 * of the program once its calls are done, and bring it back with it. Where a call delivers what is not finite, the
 * residual of these elements stays as it was; one that is not finite counts as 0. After an error it is undefined, as
 * outputs are. The error of a single call is larger with a residual than
 * options.max_relative_error and tutti_comm_last_compression say, which know of none. See also
 * docs/reference/compression-formats.md.
 *   `type` is tutti_float32, tutti_float16 or tutti_bfloat16. Buffers with residuals do not overlap, nor do residuals;
 * and none overlaps a buffer: tutti_invalid_argument. A sum of these types with `send` only partly in the buffer, or of
 * another of them, is tutti_invalid_usage, even one that would travel raw; sums of other types leave it alone. On GPUs
 * buffer and residual are memory that the GPU reaches, which calls read and write in their turn in the stream; a graph
 * does so whenever it runs, even when the residual has been detached. Blocks for nobody. */
TUTTI_API tutti_status tutti_residual_attach(const void* buffer, size_t count, tutti_type type, float* residual,
                                             tutti_comm comm);

/* `buffer` as it was attached. Its calls are done, those in streams too. What is attached when a communicator is
 * destroyed is detached by that; parts of a split or shrink have none of it. */
TUTTI_API tutti_status tutti_residual_detach(const void* buffer, tutti_comm comm);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Memory that the other ranks of this host can map, so that they read it where it lies instead of having it copied to
 * them. Any part of it may be passed to any collective of any communicator. A child of fork() shares it with its
 * parent: what one writes, the other sees.
 * Zeroed, aligned to a page. Each chunk holds a file descriptor until it is freed: many small ones come at the limit of
 * the process (ulimit -n). Freed memory must not be in use by a collective; other ranks let go of it at their
 * next collective that could read memory in place, or with the communicator. */
TUTTI_API tutti_status tutti_mem_alloc(void** memory, size_t size);
TUTTI_API tutti_status tutti_mem_free(void* memory); /* Null is allowed. */

/* Memory of the calling thread's current GPU, zeroed, for buffers of communicators on it. tutti_mem_free frees it, and
 * may wait for all that the GPU is doing, or, while streams are held (see "GPUs"), leave it to a later call of the
 * library; so may this where memory is lacking, to free what communicators that have ended leave for the next ones. */
TUTTI_API tutti_status tutti_mem_alloc_cuda(void** memory, size_t size);

/* Turns private anonymous memory of the caller (from mmap or aligned_alloc) into such memory, with its content; memory
 * and size are multiples of the page size, and nobody touches it during the call. Deregister takes the same address and
 * keeps the content. It comes before free() or munmap(), which would take the memory away under the library and the
 * peers. Memory of another kind is tutti_unsupported. */
TUTTI_API tutti_status tutti_mem_register(void* memory, size_t size);
TUTTI_API tutti_status tutti_mem_deregister(void* memory);

#ifdef __cplusplus
}
#endif

#endif
