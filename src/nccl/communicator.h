// A communicator as NCCL's clients see it: one of tutti.h's, with what they ask about it and the jobs that work for it
// in the background if it is non-blocking.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "src/nccl/abi.h"
#include "src/nccl/config.h"
#include "src/nccl/errors.h"
#include "src/nccl/handles.h"
#include "src/nccl/registrations.h"
#include "tutti/tutti.h"

namespace tutti::nccl {

struct Seat {
  int rank, ranks;
};

// A pre-multiplied sum that the program made.
struct MadeReduction {
  int number = 0;  // The program's ncclRedOp_t.
  ncclDataType_t type = ncclFloat32;
  std::uint64_t scalar = 0;      // The element, if `memory` is null.
  const void* memory = nullptr;  // Where the element is when the call runs.
};

class alignas(64) Communicator {
 public:
  Communicator(Seat seat, Settings settings, int device);
  ~Communicator();  // Waits for no peer. The last owner runs it.
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const Seat seat;
  const Settings settings;
  const int device;
  std::vector<MadeReduction> reductions;  // Touched by the one thread that makes calls.
  Registrations registrations;            // Any thread.

  // Waits for the ranks. Another thread may abort that.
  Outcome join(const ncclUniqueId& id);
  // Is the part that a split made.
  Outcome adopt(tutti_comm part);
  // No calls any more. Fails if there are none already.
  Outcome close();
  bool is_closed() const { return closed_; }
  // Waits until those that it has enqueued are done.
  Outcome flush();

  // Non-blocking communicators: runs the job in the background after earlier jobs; state() is in progress until
  // then. `self` keeps the communicator alive. If no thread can be started, the job does not run and state()
  // reports it.
  void begin(const Shared& self, std::function<Outcome()> job);
  // Success, in progress, or why it failed. Any thread.
  Outcome state() const;
  // Success if calls may be made.
  Outcome ready() const;
  // Success if another may be made of it without some ranks: also of one that has failed or is in progress.
  Outcome ready_to_be_shrunk() const;
  // Ends its calls, here and on the peers, for good; from then on state() tells of jobs only. Returns at once.
  void end_calls();
  // Waits for the ranks that stay. Where calls were ended, also until none touches the program's memory any more, but
  // not for long. From then on state() tells of no job before this.
  Outcome shrink(const std::vector<int>& excluded, const Settings& asked, tutti_comm& part);
  // Ends every wait, also of a join() or shrink() that has not begun. Any thread. A non-blocking one touches the
  // program's memory no more when this returns, unless what it does there takes longer than some seconds.
  void abort();
  bool is_aborted() const;
  // Once all ranks are there.
  bool is_joined() const { return joined_; }

  tutti_comm comm() const { return __atomic_load_n(&comm_, __ATOMIC_ACQUIRE); }
  // Takes those calls that settings.wire does. Null: it takes none.
  tutti_comm narrow() const { return compressed_; }
  // In which calls are in progress: of a non-blocking one that does not enqueue them (memory.h). Otherwise null.
  tutti_stream stream() const { return stream_; }

 private:
  Outcome settle();
  Outcome state_of_jobs() const;
  void work();
  tutti_comm being_made() const;  // Null: none.
  void rest();                    // Until nothing works, but not for long.

  tutti_comm comm_ = nullptr;        // Atomic: tutti_comm_create writes it while others look.
  tutti_comm compressed_ = nullptr;  // Ends with comm_.
  tutti_stream stream_ = nullptr;
  std::atomic<bool> joined_ = false;
  std::atomic<bool> closed_ = false;
  std::atomic<bool> calls_ended_ = false;

  mutable std::mutex mutex_;
  bool aborted_ = false;
  tutti_comm* being_made_ = nullptr;  // Where join() or shrink() has its handle written. Null: none is under way.
  std::deque<std::function<Outcome()>> jobs_;
  bool working_ = false;            // A thread does them.
  std::condition_variable rested_;  // It does no longer.
  Outcome worked_;                  // The first failure of a job, if one failed.
};

// Gives it a handle.
Outcome admit_new(Shared communicator, ncclComm_t& handle);
// Where other threads may look for it.
void put(ncclComm_t* out, ncclComm_t handle);

Outcome no_communicator(const ncclComm* handle);
// The communicator, with which calls may be made.
Outcome find_ready(const ncclComm* handle, Shared& communicator);

}  // namespace tutti::nccl
