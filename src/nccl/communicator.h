// A communicator as NCCL's clients see it: one of tutti.h's, with what they ask about it and the job that works for it
// in the background if it is non-blocking.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "src/nccl/abi.h"
#include "src/nccl/config.h"
#include "src/nccl/errors.h"
#include "src/nccl/handles.h"
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
  ~Communicator();  // Returns at once (leaving.h).
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const Seat seat;
  const Settings settings;
  const int device;
  std::vector<MadeReduction> reductions;  // Touched by the one thread that makes calls.

  // Waits for the ranks. Another thread may abort that.
  Outcome join(const ncclUniqueId& id);
  // Is the part that a split made.
  Outcome adopt(tutti_comm part);
  // No calls any more. Fails if there are none already.
  Outcome close();

  // Of a non-blocking one: works in the background, in progress until then. `self` keeps it there.
  void begin(const Shared& self, std::function<Outcome()> work);
  // Success, in progress, or why it failed. Any thread.
  Outcome state() const;
  // Success if calls may be made.
  Outcome ready() const;
  // Ends every wait, also of a join() that has not begun. Any thread; returns at once.
  void abort();

  tutti_comm comm() const { return __atomic_load_n(&comm_, __ATOMIC_ACQUIRE); }
  tutti_stream stream() const { return stream_; }  // Of a non-blocking one.

 private:
  Outcome make_stream();
  Outcome state_of_job() const;

  tutti_comm comm_ = nullptr;  // Atomic: tutti_comm_create writes it while others look.
  tutti_stream stream_ = nullptr;
  std::atomic<bool> joined_ = false;
  std::atomic<bool> closed_ = false;

  mutable std::mutex mutex_;
  bool aborted_ = false;
  bool joining_ = false;
  bool working_ = false;
  Outcome worked_;  // The failure of the last job, if it failed.
  std::thread job_;
};

Outcome no_communicator(const ncclComm* handle);
// The communicator, with which calls may be made.
Outcome find_ready(const ncclComm* handle, Shared& communicator);

}  // namespace tutti::nccl
