// NCCL communicator: a communicator of tutti.h with the properties that clients query, and a queue of background jobs
// if it is non-blocking.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "src/nccl/abi.h"
#include "src/nccl/config.h"
#include "src/nccl/errors.h"
#include "src/nccl/exchange.h"
#include "src/nccl/fallback.h"
#include "src/nccl/handles.h"
#include "src/nccl/registrations.h"
#include "tutti/tutti.h"

namespace tutti::nccl {

struct RankConfig {
  int rank, ranks;
};

// The function that ended the calls of a communicator.
enum class EndedBy { nothing, shrink, revoke };

// Leaves a communicator, unless another object has taken it.
struct OwnedComm {
  tutti_comm comm = nullptr;
  OwnedComm() = default;
  ~OwnedComm() { tutti_comm_leave(comm); }
  OwnedComm(const OwnedComm&) = delete;
  OwnedComm& operator=(const OwnedComm&) = delete;
};

// A pre-multiplied sum created by the program.
struct MadeReduction {
  int number = 0;  // Value that the program received as ncclRedOp_t.
  ncclDataType_t type = ncclFloat32;
  std::uint64_t scalar = 0;      // Scalar, if `memory` is null.
  const void* memory = nullptr;  // Address of the scalar, read when the call runs.
};

class alignas(64) Communicator {
 public:
  Communicator(RankConfig rank_config, Settings settings, int device);
  // Run by the last owner. Waits for no peer, but a fallback library may wait for the ranks of this host.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const RankConfig rank_config;
  const Settings settings;
  const int device;
  std::vector<MadeReduction> reductions;  // Used only by the thread that makes calls.
  Registrations<UserBuffer> buffers;      // Thread-safe.
  Registrations<UserWindow> windows;      // Thread-safe.

  // Waits until all ranks have joined. Another thread may abort the wait.
  Outcome join(const ncclUniqueId& id);
  // Takes ownership of a communicator made by splitting or shrinking.
  Outcome adopt(tutti_comm new_comm);
  // Forbids further calls. Fails if it was called before.
  Outcome close();
  bool is_closed() const { return closed_; }
  // Waits until all enqueued calls are done.
  Outcome flush();

  // Non-blocking communicators: runs the job in the background after earlier jobs; state() is in progress until
  // then. `self` keeps the communicator alive. If no thread can be started, the job does not run and state()
  // reports it.
  void begin(const Shared& self, std::function<Outcome()> job);
  // Returns success, in progress, or the first failure. Thread-safe.
  Outcome state() const;
  // Returns success if calls may be made. state() then no longer reports the failure of a suspend() or resume().
  Outcome ready();
  // Returns success if ncclCommShrink or ncclCommRevoke may be called. The communicator may have failed or be busy.
  Outcome ready_to_end_calls() const;
  // Ends all calls permanently, on this rank and its peers, and those of the fallback library on this rank. Afterwards
  // state() reports jobs only. Returns false if calls were ended before.
  bool end_calls(EndedBy cause);
  bool has_ended_calls() const { return ended_by_ != EndedBy::nothing; }
  // After end_calls(): waits, for a bounded time, until calls no longer access the program's memory. Afterwards state()
  // ignores earlier jobs.
  Outcome quiesce();
  // Makes a communicator without the `excluded` ranks; waits for the remaining ranks. After end_calls(), also waits,
  // for a bounded time, until calls no longer access the program's memory. Afterwards state() ignores earlier jobs.
  Outcome shrink(const std::vector<int>& excluded, const Settings& requested, tutti_comm& new_comm);
  // Makes calls fail until resume() or cancel_suspension().
  void begin_suspension() { suspended_ = true; }
  void cancel_suspension() { suspended_ = false; }
  bool is_suspended() const { return suspended_; }
  // After begin_suspension(), collective: frees the device memory of the communicator, and what the process has cached
  // on the device. Waits for enqueued calls, and for all ranks. Fails on all ranks if one has windows. If it fails,
  // calls are allowed again, unless the communicator has failed.
  Outcome suspend();
  // Collective: ends the suspension. If it fails, the communicator stays suspended.
  Outcome resume();
  // Ends every wait, including those of a later join(), shrink(), suspend() or resume(). Thread-safe. If the
  // communicator is non-blocking, also waits, for at most some seconds, until calls no longer access the program's
  // memory.
  void abort();
  bool is_aborted() const;
  // True once all ranks have joined.
  bool is_joined() const { return joined_; }

  // Only for the thread that makes calls, and for jobs.
  tutti_comm comm() const { return __atomic_load_n(&comm_, __ATOMIC_ACQUIRE); }
  // Runs body(comm()), which must not wait for peers. For any thread: suspend() and resume() replace comm() before or
  // after.
  template <typename Body>
  auto with_comm(Body&& body) const {
    const std::lock_guard lock(replacing_);
    return body(comm());
  }
  // Handle for calls that settings.compression selects; null: none.
  tutti_comm compressed() const { return compressed_; }
  // Handle to `base`, which is comm() or compressed(), whose calls have these options. Created on first use, and ends
  // with the communicator. Only for the thread that makes calls.
  Outcome handle_with(tutti_comm base, const CallOptions& options, tutti_comm& handle);
  // Communicator of another NCCL for functions that are not implemented; null: none. The communicator must have joined.
  Fallback* fallback() const { return fallback_.get(); }
  // Stream of calls of a non-blocking communicator that does not enqueue them (memory.h), else null.
  tutti_stream stream() const { return stream_; }

 private:
  class Creation;
  Outcome settle();
  // Collective: moves the communicator to other memory, as in Settings::memory.
  Outcome move_to(const std::string& memory);
  // Collective, after move_to(kHostMemory): returns the memory of the ended communicator to the device.
  Outcome return_device_memory();
  Exchange exchange(tutti_comm comm, std::int64_t limit_ms) const;
  Outcome make_same_ranks(const std::string& memory, tutti_comm& made);
  Outcome concluded(Outcome suspension);
  void forget_failures();
  Outcome state_of_jobs() const;
  Outcome state_of_calls() const;
  void work();
  tutti_comm being_made() const;  // Null: none.
  void abort_comm() const;
  void rest();  // Waits, for a bounded time, until no job or call runs.

  // Atomic: tutti_comm_create writes it while other threads read it. On host memory while suspended.
  tutti_comm comm_ = nullptr;
  tutti_comm compressed_ = nullptr;  // Destroyed with comm_.
  struct View {
    tutti_comm base;
    CallOptions options;
    tutti_comm handle;
  };
  std::vector<View> views_;             // The handles are destroyed with comm_.
  std::unique_ptr<Fallback> fallback_;  // Set once, before joined_.
  tutti_stream stream_ = nullptr;
  std::atomic<bool> joined_ = false;
  std::atomic<bool> closed_ = false;
  std::atomic<EndedBy> ended_by_ = EndedBy::nothing;
  std::atomic<bool> suspended_ = false;
  mutable std::mutex replacing_;  // Held while comm_ is replaced.

  mutable std::mutex mutex_;
  bool aborted_ = false;
  tutti_comm* being_made_ = nullptr;  // Handle that is being created; null: none.
  std::deque<std::function<Outcome()>> jobs_;
  bool working_ = false;            // A thread runs jobs.
  std::condition_variable rested_;  // Signals the end of that thread.
  Outcome worked_;                  // First failure of a job.
  Outcome suspension_;              // Failure of the last suspend() or resume(), which does not forbid calls.
};

// Creates a handle. Fails if the process has too many communicators.
Outcome admit_new(Shared communicator, ncclComm_t& handle);
// Stores `handle` atomically, because other threads may read `out`.
void put(ncclComm_t* out, ncclComm_t handle);

// Returns the error for an invalid handle.
Outcome no_communicator(const ncclComm* handle);
// Returns the error for a communicator that is in progress. `alternative`: what the caller may do instead of waiting.
Outcome still_in_progress(const std::string& alternative = "");
// Finds the communicator. Fails unless calls may be made.
Outcome find_ready(const ncclComm* handle, Shared& communicator);

}  // namespace tutti::nccl
