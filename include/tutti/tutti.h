/* Tutti: collective communication for CPUs and GPUs. This header is the whole C API (C99, also C++).
 * Guides, a glossary and a reference of environment variables are in docs/. */
#ifndef TUTTI_TUTTI_H
#define TUTTI_TUTTI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUTTI_VERSION_MAJOR 0
#define TUTTI_VERSION_MINOR 2
#define TUTTI_VERSION_PATCH 0
#define TUTTI_VERSION (TUTTI_VERSION_MAJOR * 10000 + TUTTI_VERSION_MINOR * 100 + TUTTI_VERSION_PATCH)

#if defined(__GNUC__)
#define TUTTI_API __attribute__((visibility("default")))
#else
#define TUTTI_API
#endif

/* ---- Conventions ------------------------------------------------------------------------------------------------- */

/* Arguments
 *   Results: every function that can fail returns a tutti_status; tutti_last_error() returns its message.
 *   Outputs: the last arguments. They are written only on success, unless stated otherwise.
 *   Units: counts are in elements, sizes in bytes, times in milliseconds. Ranks start at 0.
 *   Options: structs whose first field is their size. Initialize them with ..._DEFAULT. A null pointer means defaults.
 *   Strings: arguments are copied during the call; results live as long as the library, unless stated otherwise. */

/* Handles of communicators, requests, streams, events and windows
 *   Errors: a null, destroyed or unknown handle is tutti_invalid_argument.
 *   Fork: handles of the parent are invalid in the child. */

/* Threads
 *   Communicator: used by one thread at a time. Concurrent use is undefined, and not checked, to keep small calls fast.
 *   Any thread: tutti_comm_abort, tutti_comm_async_error, tutti_last_error, streams, events, messages with tags.
 *   Order: all ranks make the same calls in the same order. Calls of a communicator run one after the other, in all
 *     streams; calls of a group run together.
 *   pthread_cancel: takes effect when the call returns. Asynchronous cancellation is not supported. */

/* Blocking
 *   Null stream: a call returns when this rank's part is done: its input may be overwritten and its output read.
 *   Other streams: a call returns immediately.
 *   Limits: every wait for a peer ends at the communicator's timeout (unless it is -1; tutti_request_wait: at its own),
 *     by an abort, or when a peer dies. Synchronization ends when the calls that it waits for end. */

/* ---- Status ------------------------------------------------------------------------------------------------------ */

typedef enum {
  tutti_ok = 0,
  tutti_invalid_argument = 1, /* A value that is never valid, such as a null buffer or an unknown type. */
  tutti_invalid_usage = 2,    /* A valid value at the wrong time, or ranks that disagree on a call. */
  tutti_system_error = 3,     /* An operating system call failed; the message has its error. */
  tutti_remote_error = 4,     /* A peer died or failed; the message names its rank. */
  tutti_timeout = 5,          /* A timeout passed; the message names the rank that was missing. */
  tutti_aborted = 6,          /* The communicator was aborted, by this rank or by a peer. */
  tutti_unsupported = 7,      /* Valid, but not built in, or not available on this machine. */
  tutti_internal_error = 8,   /* A bug in Tutti. */
  tutti_in_progress = 9       /* Not finished yet. Not a failure; returned by queries, and by waits with a limit. */
} tutti_status;

/* Returns the name of a status, such as "invalid argument". Never null. */
TUTTI_API const char* tutti_status_name(tutti_status status);

struct tutti_comm_handle;
typedef struct tutti_comm_handle* tutti_comm;

/* Returns an error message, or "" if there was no error.
 *   With a communicator: why it failed. Valid until the communicator is destroyed.
 *   With null: why the calling thread's last failed call failed. Valid until the thread's next failed call. */
TUTTI_API const char* tutti_last_error(tutti_comm comm);

/* Sets the thread's last error to "function: message", cancels its group unless `status` is ok, and returns it. */
TUTTI_API tutti_status tutti_report(const char* function, tutti_status status, const char* message);

/* Returns TUTTI_VERSION of the loaded library. */
TUTTI_API int tutti_version(void);

/* ---- Communicators ----------------------------------------------------------------------------------------------- */

/* Identifies a new communicator, and contains a secret. One rank creates it and sends it to the others. */
typedef struct {
  char bytes[128];
} tutti_unique_id;

/* Overrides of autotuning, for benchmarks and debugging. Must match on all ranks. "" means the same as null.
 *   Guide: docs/guide/autotuning.md. Programs leave all fields unset.
 *   Names: tutti_algorithms() lists algorithms. An unknown name is tutti_invalid_argument.
 *   A collective without the algorithm uses the tuner's choice.
 *   Mapped algorithms (..._mapped) need buffers of tutti_mem_alloc on all ranks, unless all ranks are threads of one
 *     process; other buffers are tutti_invalid_argument on all ranks. */
typedef struct {
  size_t size;           /* sizeof(tutti_tuning_options) */
  const char* algorithm; /* Such as "ring". Null: TUTTI_ALGORITHM, or the tuner's choice. */
  const char* protocol; /* "LL" (small messages), "LL128" (medium ones, GPUs only) or "Simple" (large ones), in upper or
                           lower case. Null: TUTTI_PROTOCOL, or the tuner's choice. */
  const char* transport; /* "shm" (one host), "tcp", "verbs" (RDMA), "ucx", "net_plugin"; with shm: "shm+tcp" etc.
                            Only at creation. Null: TUTTI_TRANSPORT, or shm+verbs if all have it, else shm+tcp. */
  uint32_t channels;     /* Number of channels; at most 1 in host memory. 0: TUTTI_CHANNELS, or the tuner's choice. */
  uint32_t min_channels; /* Bounds of the tuner's choice on GPUs, where a channel is a thread block. 0: none. */
  uint32_t max_channels;
} tutti_tuning_options;
#define TUTTI_TUNING_OPTIONS_DEFAULT \
  { sizeof(tutti_tuning_options), NULL, NULL, NULL, 0, 0, 0 }

/* Options of a communicator. "" means the same as null.
 *   Ownership: the struct, `tuning` and all strings are copied during the call.
 *   Inheritance: a split, a shrink and tutti_comm_with_options inherit unset fields. */
typedef struct {
  size_t size;        /* sizeof(tutti_comm_options) */
  const char* name;   /* Name in messages, such as "gradients". Only at creation. Null: none; a split appends its color
                         to the name of its parent, a shrink the number of its ranks. */
  int64_t timeout_ms; /* Maximum wait of an operation, in ms. 0: TUTTI_TIMEOUT_MS, or 10 minutes. -1: no limit. */
  int64_t init_timeout_ms;   /* Maximum wait for ranks to join. 0: TUTTI_INIT_TIMEOUT_MS, or 2 minutes. -1: no limit. */
  const char* memory;        /* Memory of buffers: "host", "cuda" (the GPU that is current in the calling thread) or
                                "cuda:1" (GPU 1). Null: host. A split uses the memory of its parent. */
  const char* compression;   /* Compression of float32, float16 and bfloat16 messages: "raw" (none), "bf16", "fp16",
                                "int8", "int8_b32", "int6", "int4", "fp8_e4m3", "fp8_e5m2" or "mxfp8". Must match on all
                                ranks. Null: TUTTI_COMPRESS, or raw. See docs/reference/compression-formats.md. */
  double max_relative_error; /* Bound on the expected relative error, above 0 and below 1, instead of a format: each
                                call uses the fastest format within it, or none. Must match on all ranks. Not with
                                stochastic rounding. 0: TUTTI_MAX_RELATIVE_ERROR, or no bound. */
  const char* compression_rounding; /* Rounding of compressed values: "nearest" or "stochastic" (unbiased mean, except
                                       for the largest element of a scale block). Ranks may differ. Null:
                                       TUTTI_COMPRESS_ROUNDING, or nearest. */
  uint64_t compression_seed;        /* Seed of stochastic rounding: the same seed, rank and number of the call give the
                                       same bits. 0: TUTTI_COMPRESS_SEED, or 0. */
  const tutti_tuning_options* tuning; /* Overrides of autotuning. Null: environment variables, or the tuner's choice. */
  const char* wait; /* Waits for peers in host memory: "auto" (spin or yield briefly, then sleep), "spin" or "sleep".
                       Only at creation. Ranks may differ. Null: TUTTI_WAIT, or auto. */
  uint64_t traffic_class; /* RDMA traffic class, up to 255. Only at creation; splits keep it. 0: TUTTI_IB_TC, or 0. */
} tutti_comm_options;

#define TUTTI_COMM_OPTIONS_DEFAULT \
  { sizeof(tutti_comm_options), NULL, 0, 0, NULL, NULL, 0, NULL, 0, NULL, NULL, 0 }

/* Creates an id and starts to listen for the ranks that will use it.
 *   Resources: the process must live until all ranks have joined. An unused id keeps its descriptors and its thread
 *     until the process ends. */
TUTTI_API tutti_status tutti_get_unique_id(tutti_unique_id* id);

/* Creates the communicator `id` of `ranks` ranks (at most 65,536) and joins it as `rank`.
 *   Blocks: until all ranks have joined, at most init_timeout_ms.
 *   comm: written as soon as the arguments are valid, so that another thread can abort the wait. Until then
 *     tutti_comm_async_error returns tutti_in_progress. On failure `comm` is null.
 *   options: equivalent on all ranks.
 *   MPI: tutti_comm_create_mpi in tutti/mpi.h creates one for an MPI_Comm. */
TUTTI_API tutti_status tutti_comm_create(const tutti_unique_id* id, int rank, int ranks,
                                         const tutti_comm_options* options, tutti_comm* comm);

/* Creates a communicator whose ranks are all in this process; comms[i] is the handle of rank i.
 *   Use: one thread per rank, or one thread for several ranks in groups, which also destroys them in a group.
 *   Limits: about ranks^2 file descriptors, twice as many after a split; 1,024 suffice for 31 ranks. */
TUTTI_API tutti_status tutti_comm_create_all(int ranks, const tutti_comm_options* options, tutti_comm* comms);

/* Like tutti_comm_create; reads rank, ranks and rendezvous from the variables of torchrun, Open MPI, MPICH (PMI) or
 * Slurm, or from TUTTI_RANK, TUTTI_RANKS and TUTTI_ROOT.
 *   Without any of these: creates a communicator of one rank.
 *   Errors: a rank without a number of ranks, or the reverse, is tutti_invalid_usage; from Slurm, a warning.
 *   Guide: docs/guide/multi-node.md describes hosts, TUTTI_ROOT and Slurm. */
TUTTI_API tutti_status tutti_comm_create_from_environment(const tutti_comm_options* options, tutti_comm* comm);

/* Returns the variables that tutti_comm_create_from_environment used, such as "Slurm (SLURM_PROCID, SLURM_NTASKS)"; ""
 * without a launcher. Valid until the communicator is destroyed. */
TUTTI_API tutti_status tutti_comm_launcher(tutti_comm comm, const char** launcher);

#define TUTTI_COLOR_NONE (-1)

/* Creates one communicator for each color (0 or more), with ranks ordered by key, then by rank in `comm`.
 *   All ranks of `comm` call it. A rank with TUTTI_COLOR_NONE gets null.
 *   Blocks: until all ranks have joined. */
TUTTI_API tutti_status tutti_comm_split(tutti_comm comm, int color, int key, const tutti_comm_options* options,
                                        tutti_comm* new_comm);

/* Creates a communicator of all ranks of `comm` except excluded[count], in the same order, after ranks died or hang.
 *   Only the remaining ranks call it, with the same list. docs/guide/failures.md describes errors.
 *   comm: may have failed or been aborted; unchanged.
 *   Blocks: until this rank's streams are done and all remaining ranks have joined, at most init_timeout_ms.
 *   new_comm: written early, so that another thread can abort the wait; null on failure. */
TUTTI_API tutti_status tutti_comm_shrink(tutti_comm comm, const int* excluded, int count,
                                         const tutti_comm_options* options, tutti_comm* new_comm);

/* Creates another handle to the same communicator, whose calls use `options`; unset fields are inherited.
 *   Local: no communication, no overhead per call.
 *   Lifetime: until tutti_comm_destroy(view), or until `comm` is destroyed. */
TUTTI_API tutti_status tutti_comm_with_options(tutti_comm comm, const tutti_comm_options* options, tutti_comm* view);

/* Returns this rank's number, and the number of ranks. */
TUTTI_API tutti_status tutti_comm_rank(tutti_comm comm, int* rank);
TUTTI_API tutti_status tutti_comm_ranks(tutti_comm comm, int* ranks);

/* Returns the CUDA ordinal of the GPU whose memory the communicator uses; -1 for host memory. */
TUTTI_API tutti_status tutti_comm_device(tutti_comm comm, int* device);

/* Returns the bytes of GPU memory that this rank has allocated for the communicator, without buffers. */
TUTTI_API tutti_status tutti_comm_device_memory(tutti_comm comm, size_t* bytes);

/* Returns the algorithm and the protocol of this rank's last collective on `comm`, through any of its handles.
 *   "": the collective sent no messages. send, recv and all_to_all_v do not change the result.
 *   Calls in streams: valid after they have completed. */
TUTTI_API tutti_status tutti_comm_last_choice(tutti_comm comm, const char** algorithm, const char** protocol);

/* Returns the compression format of this rank's last collective on `comm`, and its expected error.
 *   error: RMS of the errors over RMS of the results, for sums of independent Gaussian numbers; 0 for "raw". */
TUTTI_API tutti_status tutti_comm_last_compression(tutti_comm comm, const char** compression, double* error);

/* Counters of a rank since the communicator was created, over all its handles. Initialize with
 * TUTTI_COMPRESSION_STATISTICS_DEFAULT.
 *   Calls count when they begin, on GPUs when they are enqueued. Replays of CUDA graphs are not counted.
 *   uncompressed_calls includes internal calls of splits and, on GPUs, of joining. */
typedef struct {
  size_t size;                 /* sizeof(tutti_compression_statistics) */
  uint64_t compressed_calls;   /* Number of collectives with compressed messages. */
  uint64_t uncompressed_calls; /* Number of all other collectives. */
  uint64_t element_bytes;      /* Bytes that compressed calls would have sent without compression. */
  uint64_t message_bytes;      /* Bytes that compressed calls sent. */
} tutti_compression_statistics;
#define TUTTI_COMPRESSION_STATISTICS_DEFAULT \
  { sizeof(tutti_compression_statistics), 0, 0, 0, 0 }
TUTTI_API tutti_status tutti_comm_compression_statistics(tutti_comm comm, tutti_compression_statistics* statistics);

/* Returns a collective's algorithms, such as "bruck, direct". Some need several hosts or certain numbers of ranks. */
TUTTI_API tutti_status tutti_algorithms(const char* collective, const char** names);

/* Waits for this rank's calls so far, in all streams, and returns the communicator's error, if any. Calls of an open
 * group and replays of CUDA graphs are not included. */
TUTTI_API tutti_status tutti_comm_synchronize(tutti_comm comm);

/* Waits until all enqueued calls are done and all ranks finalize or destroy their communicator. Afterwards only queries
 * and destroy are allowed.
 *   In a group: runs at its end, after its calls.
 *   Errors: a message that was never received is tutti_invalid_usage on the sender and, within a host, on the
 *     receiver. */
TUTTI_API tutti_status tutti_comm_finalize(tutti_comm comm);

/* Finalizes the communicator unless that has been done, and frees it. Null is allowed.
 *   Blocks: until all ranks finalize or destroy it. A thread that drives several ranks destroys them in one group.
 *   Several communicators: all ranks destroy them in the same order or in one group, or use tutti_comm_leave.
 *   Errors: invalid while ranks are joining. In all other cases the handle becomes invalid, and a failure that no call
 *     has reported yet is returned. */
TUTTI_API tutti_status tutti_comm_destroy(tutti_comm comm);

/* Like tutti_comm_destroy, but waits only for this rank's calls, not for peers.
 *   Use: processes that destroy their communicators in different orders.
 *   Peers: complete the calls in which this rank has done its part, and may still exchange messages with each other;
 *     other calls fail.
 *   After a failure: waits up to a second for peers to leave this rank's buffers. */
TUTTI_API tutti_status tutti_comm_leave(tutti_comm comm);

/* Ends all waits of the communicator, on this rank and on its peers, with tutti_aborted. Returns immediately.
 *   Afterwards: destroy the communicator, which then does not wait for peers to do the same. */
TUTTI_API tutti_status tutti_comm_abort(tutti_comm comm);

/* Returns tutti_ok, or why the communicator failed: in a call, or by the death of a peer while idle. A failed
 * communicator stays failed; destroy it, or continue with tutti_comm_shrink. */
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
  tutti_float8_e5m2,
  tutti_bool,      /* One byte, 0 or 1, like _Bool. Reductions of other bytes are unspecified. */
  tutti_complex64, /* Two float32, real and imaginary part, like float _Complex. */
  tutti_complex128 /* Two float64. */
} tutti_type;

/* Reductions.
 *   Rounding: floats of 16 and 8 bits are added in float32 within a step and rounded once; between steps they travel in
 *     the element type, so a result is rounded at most once per rank.
 *   Reproducibility: all ranks of an all-reduce get the same bits. So does each run of the same call with the same
 *     options, unless TUTTI_TUNE=1, NVSwitches add, or links are measured (TUTTI_DETERMINISTIC=1 avoids all). */

/* Reductions of bool and complex types. Undefined ones are tutti_invalid_argument.
 *   tutti_bool: sum, max and bor are logical or; prod, min and band are logical and. No avg, no pre-multiplied sum.
 *   Complex types: sum, prod, avg, pre-multiplied sums; on GPUs only sum and avg, others are tutti_unsupported. */
enum {
  tutti_sum = 0, /* Integer sums and products wrap around. */
  tutti_prod,
  tutti_min, /* min and max of floats are NaN if any operand is, and order -0 before 0. */
  tutti_max,
  tutti_avg,  /* The sum, divided by the number of ranks; integers round towards zero. */
  tutti_band, /* Bitwise and, or, exclusive or of integers and tutti_bool; undefined for other types. */
  tutti_bor,
  tutti_bxor
};
typedef int32_t tutti_reduction; /* One of the above, or created by the functions below. */

/* Creates a reduction that multiplies this rank's input by *scalar and then sums. For calls of `type` on `comm`.
 *   scalar: one element of `type`, copied during the call.
 *   Lifetime: calls keep the scalar; the reduction may be destroyed while they run. */
TUTTI_API tutti_status tutti_reduction_create_pre_mul_sum(const void* scalar, tutti_type type, tutti_comm comm,
                                                          tutti_reduction* reduction);

/* Like tutti_reduction_create_pre_mul_sum, but reads the scalar each time a call runs, also in replays of CUDA graphs.
 *   scalar: an aligned element in memory that `comm` can access. It must stay valid until the calls are done. */
TUTTI_API tutti_status tutti_reduction_create_pre_mul_sum_at(const void* scalar, tutti_type type, tutti_comm comm,
                                                             tutti_reduction* reduction);

/* Destroys a reduction. Calls that use it continue. */
TUTTI_API tutti_status tutti_reduction_destroy(tutti_reduction reduction, tutti_comm comm);

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

/* All collectives. n is the number of ranks.
 *   In place: the overlap that each function states. Any other overlap of send and recv is undefined.
 *   Zero elements: no buffer is accessed; buffers may be null. Buffers that a rank does not use may be null.
 *   After an error: outputs are undefined. Peers may access buffers for up to a second after the call has failed; see
 *     docs/guide/failures.md. */

/* Mismatched calls
 *   Ranks whose calls differ in collective, count, type, reduction, root or order fail; the message shows both calls.
 *   A rank that waits for no peer in the call, such as the root of a broadcast, reports the failure in its next call,
 *     in tutti_comm_async_error or in destroy.
 *   A collective against a send or recv is detected within a host. Between hosts it ends at the timeout. */

struct tutti_stream_handle;
typedef struct tutti_stream_handle* tutti_stream;

/* recv[count] = reduction of send[count] of all ranks. In place: send == recv. */
TUTTI_API tutti_status tutti_all_reduce(const void* send, void* recv, size_t count, tutti_type type,
                                        tutti_reduction reduction, tutti_comm comm, tutti_stream stream);

/* recv[n * count] = send[count] of all ranks, ordered by rank. In place: send == recv + rank * count. */
TUTTI_API tutti_status tutti_all_gather(const void* send, void* recv, size_t count, tutti_type type, tutti_comm comm,
                                        tutti_stream stream);

/* recv[count] = reduction of block `rank` of send[n * count] of all ranks. In place: recv == send + rank * count. */
TUTTI_API tutti_status tutti_reduce_scatter(const void* send, void* recv, size_t count, tutti_type type,
                                            tutti_reduction reduction, tutti_comm comm, tutti_stream stream);

/* recv[count] = send[count] of the root. send is used on the root only. In place: send == recv. */
TUTTI_API tutti_status tutti_broadcast(const void* send, void* recv, size_t count, tutti_type type, int root,
                                       tutti_comm comm, tutti_stream stream);

/* recv[count] of the root = reduction of send[count] of all ranks. recv is used on the root only.
 * In place on the root: send == recv. */
TUTTI_API tutti_status tutti_reduce(const void* send, void* recv, size_t count, tutti_type type,
                                    tutti_reduction reduction, int root, tutti_comm comm, tutti_stream stream);

/* Block i of recv[n * count] of rank j = block j of send[n * count] of rank i. In place: send == recv. */
TUTTI_API tutti_status tutti_all_to_all(const void* send, void* recv, size_t count, tutti_type type, tutti_comm comm,
                                        tutti_stream stream);

/* Like tutti_all_to_all with blocks of different sizes: block j is send_counts[j] elements from
 * send + send_displacements[j].
 *   Arrays: n entries each, copied during the call. The count that i sends to j must equal the count that j receives.
 *   In place: not supported. */
TUTTI_API tutti_status tutti_all_to_all_v(const void* send, const size_t* send_counts, const size_t* send_displacements,
                                          void* recv, const size_t* recv_counts, const size_t* recv_displacements,
                                          tutti_type type, tutti_comm comm, tutti_stream stream);

/* recv[n * count] of the root = send[count] of all ranks, ordered by rank. recv is used on the root only.
 * In place on the root: send == recv + root * count. */
TUTTI_API tutti_status tutti_gather(const void* send, void* recv, size_t count, tutti_type type, int root,
                                    tutti_comm comm, tutti_stream stream);

/* recv[count] = block `rank` of send[n * count] of the root. send is used on the root only.
 * In place on the root: recv == send + root * count. */
TUTTI_API tutti_status tutti_scatter(const void* send, void* recv, size_t count, tutti_type type, int root,
                                     tutti_comm comm, tutti_stream stream);

/* Sends count elements to, or receives them from, `peer`. The n-th send matches the peer's n-th recv.
 *   Counts and types must be equal; zero elements are a message too.
 *   Blocks: possibly until the peer's matching call. Use a group for exchanges. After a send the buffer may be reused;
 *     the message may not have been received yet.
 *   Self: a rank sends to itself only within one group, with the recv between the same collectives; otherwise
 *     tutti_invalid_usage. */
TUTTI_API tutti_status tutti_send(const void* send, size_t count, tutti_type type, int peer, tutti_comm comm,
                                  tutti_stream stream);
TUTTI_API tutti_status tutti_recv(void* recv, size_t count, tutti_type type, int peer, tutti_comm comm,
                                  tutti_stream stream);

/* Groups
 *   The calls between start and the outermost end are enqueued, and the end runs them together. One thread can so drive
 *     several ranks. A group belongs to its thread.
 *   Blocks: the end does, if a call has a null stream or the group ends communicators.
 *   Not allowed: creating, splitting and shrinking communicators.
 *   Finalize and destroy: run at the end, after all calls, even if these fail.
 *   Stream functions: do not include the calls of an open group. */

/* Errors in a group
 *   A rejected call returns its error, and the end returns it again and runs no call. The communicators of the other
 *     calls then fail, here with this error and on their peers with tutti_remote_error, so that no peer waits.
 *   A communicator whose only call was the rejected one stays usable. Other errors do not affect the group. */

/* Starts and ends a group. See above. */
TUTTI_API tutti_status tutti_group_start(void);
TUTTI_API tutti_status tutti_group_end(void);

/* Ends a group without running its calls, and returns their predicted time in microseconds (0 for an empty group).
 *   Use: in place of the outermost tutti_group_end. No communication; does not block.
 *   Model: idle machines; different communicators run in parallel. `tutti explain` shows predictions.
 *   Errors: tutti_unsupported for send, recv, all_to_all_v and unsuitable forced algorithms; tutti_invalid_usage
 *     unless exactly one group is open and ends no communicator. Reports rejected calls. Communicators stay usable. */
TUTTI_API tutti_status tutti_group_simulate_end(double* time_us);

/* ---- Messages with tags ------------------------------------------------------------------------------------------ */

/* Non-blocking messages in host memory, independent of collectives, groups and streams; a library thread moves them.
 *   Thread safety: any thread, at any time, also during a call on the same communicator.
 *   Matching: by source and tag. Messages of a rank with equal tags match in order. */

/* Errors of messages with tags
 *   Different counts or types: tutti_invalid_usage. A send of up to 64 KiB may succeed before.
 *   Failures: requests end within a second after an abort or failure, or when all possible peers have left.
 *   Device memory: tutti_unsupported. Finalize, destroy, leave: incomplete requests end with tutti_invalid_usage. */

typedef struct tutti_request_handle* tutti_request;
#define TUTTI_ANY_RANK (-1)

/* A message that was received or sent. Initialize with TUTTI_MESSAGE_DEFAULT. */
typedef struct {
  size_t size; /* sizeof(tutti_message) */
  int peer;    /* The sender; for a send, the receiver. */
  uint64_t tag;
  size_t count;
} tutti_message;
#define TUTTI_MESSAGE_DEFAULT \
  { sizeof(tutti_message), 0, 0, 0 }

/* Start a send to `peer`, which may be the rank itself, or a receive from `peer` or TUTTI_ANY_RANK. Do not block.
 *   Buffers: in use until the request is complete. A completed send may not have been received yet. */
TUTTI_API tutti_status tutti_isend(const void* send, size_t count, tutti_type type, int peer, uint64_t tag,
                                   tutti_comm comm, tutti_request* request);
TUTTI_API tutti_status tutti_irecv(void* recv, size_t count, tutti_type type, int peer, uint64_t tag, tutti_comm comm,
                                   tutti_request* request);

/* Returns in *found whether a message that tutti_irecv would get has arrived (1 or 0), and if so describes it. */
TUTTI_API tutti_status tutti_iprobe(int peer, uint64_t tag, tutti_comm comm, int* found, tutti_message* message);

/* Waits for the request, at most timeout_ms (0: does not wait; -1: no limit), and returns its status; tutti_in_progress
 * if it is not complete, and it continues. `message` may be null. */
TUTTI_API tutti_status tutti_request_wait(tutti_request request, int64_t timeout_ms, tutti_message* message);

/* Calls function(argument, status) once the request is complete: at once if it is, else from the library's thread, or
 * from the thread that ends the communicator or destroys the request. tutti_request_destroy returns after `function`.
 *   function: must not wait or end communicators, but may destroy the request. tutti_last_error(NULL) has the error. */
TUTTI_API tutti_status tutti_request_on_completion(tutti_request request, void (*function)(void*, tutti_status),
                                                   void* argument);

/* Destroys a request after cancelling it (tutti_aborted) or, if its data move, waiting for it. Null is allowed.
 *   In a callback: tutti_invalid_usage if it would wait for data, or for a completion function in another thread. */
TUTTI_API tutti_status tutti_request_destroy(tutti_request request);

/* ---- Streams and events ------------------------------------------------------------------------------------------ */

/* A stream is a queue of calls on host memory, which a thread of the library runs in order.
 *   Order: a call waits for all earlier calls of its communicator, in any stream. Streams are otherwise independent.
 *   Buffers: unchanged by the caller until the call is done.
 *   Errors: reported by the next synchronize of the stream, and by tutti_comm_async_error.
 *   Thread safety: any thread may use a stream. An idle stream uses no CPU. */
TUTTI_API tutti_status tutti_stream_create(tutti_stream* stream);

/* Synchronizes the stream and destroys it. Null is allowed. */
TUTTI_API tutti_status tutti_stream_destroy(tutti_stream stream);

/* Waits until all calls in the stream are done, and returns their first error. */
TUTTI_API tutti_status tutti_stream_synchronize(tutti_stream stream);

/* Returns tutti_in_progress until all calls in the stream are done, then their first error, without clearing it. */
TUTTI_API tutti_status tutti_stream_query(tutti_stream stream);

/* Calls function(argument, status) in a thread of the library when all earlier calls in the stream are done.
 *   status: the first error of these calls since the previous callback; tutti_last_error(NULL) has its message.
 *   Allowed in it: calls with a stream, queries, and further callbacks. Functions that wait are tutti_invalid_usage.
 *   Once: each callback is called once, also after failures, before a synchronize of the stream returns. */
TUTTI_API tutti_status tutti_stream_add_callback(tutti_stream stream,
                                                 void (*function)(void* argument, tutti_status status), void* argument);

/* An event marks a position in a stream. Recording again moves it. It counts as reached until it is recorded. */
struct tutti_event_handle;
typedef struct tutti_event_handle* tutti_event;
TUTTI_API tutti_status tutti_event_create(tutti_event* event);

/* Destroys an event. Streams that wait for it keep its position. Null is allowed. */
TUTTI_API tutti_status tutti_event_destroy(tutti_event event);

/* Moves the event to the end of the stream. */
TUTTI_API tutti_status tutti_event_record(tutti_event event, tutti_stream stream);

/* Makes later calls in the stream wait until the event is reached. */
TUTTI_API tutti_status tutti_stream_wait(tutti_stream stream, tutti_event event);

/* Blocks until the event is reached. */
TUTTI_API tutti_status tutti_event_synchronize(tutti_event event);

/* Like tutti_event_synchronize, for at most timeout_ms; -1: without limit. Returns tutti_in_progress if the event is
 * not reached by then. The calls before it continue, and the communicator stays usable. */
TUTTI_API tutti_status tutti_event_synchronize_for(tutti_event event, int64_t timeout_ms);

/* Returns tutti_in_progress until the event is reached. */
TUTTI_API tutti_status tutti_event_query(tutti_event event);

/* ---- GPUs -------------------------------------------------------------------------------------------------------- */

/* Communicators with options.memory "cuda". See docs/guide/gpus.md.
 *   Buffers: memory that the GPU can access, aligned to the element size.
 *   stream: a cudaStream_t of this GPU, cast to tutti_stream. Null: CUDA's legacy default stream.
 *   Blocks: creating, splitting, shrinking, synchronizing, finalizing and destroying wait for peers. Other calls return
 *     when they are enqueued.
 *   Order: calls of a communicator run in the order in which they were made, in all streams.
 *   Errors: reported by tutti_comm_async_error, later calls and destroy. */

/* Buffers after a failure of a GPU communicator
 *   Peers may still access buffers on the same GPU and in windows. tutti_comm_synchronize, tutti_window_deregister,
 *     shrink, destroy and leave wait up to a second for them. Free or reuse buffers after one of these has returned. */

/* Returns the CUDA ordinal of the GPU that options.memory "cuda" selects in the calling thread. */
TUTTI_API tutti_status tutti_current_device(int* device);

/* Registers memory of this rank's GPU (cudaMalloc or tutti_mem_alloc_cuda) that peers may then access in place.
 *   All ranks call it, each in its own thread. Blocks: until all have.
 *   flags: TUTTI_WINDOW_SYMMETRIC. send and recv of each collective must then lie in windows on all ranks, or on none;
 *     offsets may differ. Violations are tutti_invalid_usage.
 *   window: null if the memory cannot be shared, beyond 63 windows, and in host memory. Calls then work without it. */
#define TUTTI_WINDOW_SYMMETRIC 1u
typedef struct tutti_window_handle* tutti_window;
TUTTI_API tutti_status tutti_window_register(void* memory, size_t size, uint32_t flags, tutti_comm comm,
                                             tutti_window* window);

/* Ends a window. All ranks call it, in the same order. Afterwards CUDA graphs with calls in the window are invalid.
 *   Blocks: until this rank's calls are done and, if each rank is a process, until all ranks have called it. The memory
 *     may then be freed. Ranks of one process free it after the call has returned on all ranks.
 *   After a failure: waits up to a second for peers to leave the memory. */
TUTTI_API tutti_status tutti_window_deregister(tutti_window window, tutti_comm comm);

/* ---- Error feedback ---------------------------------------------------------------------------------------------- */

/* Enables error feedback: the quantization error of compressed sums and averages of buffer[count] is stored in
 * residual[count] and added to the next input. docs/guide/compression.md has details. Does not block.
 *   Calls: all_reduce, reduce_scatter and reduce with tutti_sum or tutti_avg whose `send` lies in the buffer. Ranks may
 *     differ.
 *   residual: owned by the caller, who zeroes it first and saves it with the state of the program. It is in units of
 *     `send`; undefined after an error. */

/* Restrictions of error feedback
 *   type: tutti_float32, tutti_float16 or tutti_bfloat16.
 *   Overlap: buffers and residuals must not overlap each other: tutti_invalid_argument.
 *   tutti_invalid_usage: a sum whose `send` lies only partly in the buffer, or has another of these types.
 *   Non-finite results: leave the residual of these elements unchanged.
 *   GPUs: calls access the residual in stream order; CUDA graphs do so in each replay, even after a detach. */

/* Attaches `residual` to `buffer`. See above. */
TUTTI_API tutti_status tutti_residual_attach(const void* buffer, size_t count, tutti_type type, float* residual,
                                             tutti_comm comm);

/* Disables error feedback for `buffer`, after its calls are done. Destroying the communicator detaches all buffers. New
 * communicators of a split or shrink have none. */
TUTTI_API tutti_status tutti_residual_detach(const void* buffer, tutti_comm comm);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Allocates memory that other ranks of this host can map, so that collectives access it, or parts, without a copy.
 *   Content: zeroed, aligned to a page. A child of fork() shares it with its parent.
 *   Resources: one file descriptor until it is freed (ulimit -n).
 *   Errors: tutti_system_error if memory or descriptors are exhausted. */
TUTTI_API tutti_status tutti_mem_alloc(void** memory, size_t size);

/* Frees memory of tutti_mem_alloc or tutti_mem_alloc_cuda, which no running collective may use. Null is allowed. Peers
 * unmap host memory at their next collective in mapped memory, or with the communicator. */
TUTTI_API tutti_status tutti_mem_free(void* memory);

/* Allocates zeroed memory on the calling thread's current GPU, for communicators on it. Free it with tutti_mem_free.
 *   Blocks: freeing, and allocating when memory is short, may wait for all work of the GPU. */
TUTTI_API tutti_status tutti_mem_alloc_cuda(void** memory, size_t size);

/* Returns memory of ended communicators, which the process caches, to a GPU (CUDA ordinal): at once or, while calls of
 * the process are in flight, when a communicator is created or ends after them. May wait for all work of the GPU. */
TUTTI_API tutti_status tutti_mem_trim_cuda(int device);

/* Makes private anonymous memory of the caller (mmap, aligned_alloc) accessible to other ranks, like tutti_mem_alloc,
 * and keeps its content.
 *   memory, size: multiples of the page size. No thread may access the memory during the call.
 *   Errors: tutti_unsupported for other kinds of memory. */
TUTTI_API tutti_status tutti_mem_register(void* memory, size_t size);

/* Undoes tutti_mem_register of the same address and keeps the content. Call it before free() or munmap(). */
TUTTI_API tutti_status tutti_mem_deregister(void* memory);

#ifdef __cplusplus
}
#endif

#endif
