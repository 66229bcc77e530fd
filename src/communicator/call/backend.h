// A backend runs the calls of one rank whose buffers lie in one kind of memory: host memory (host/) or memory of a
// device (device/).
#pragma once

#include <memory>

#include "src/base/status.h"
#include "src/communicator/call/call.h"
#include "src/communicator/call/operation.h"
#include "src/communicator/call/options.h"
#include "src/communicator/call/run_statistics.h"

namespace tutti {

class Communicator;
class DeviceBackend;

// Not thread-safe, except failure(), last_run() and compression_statistics().
class Backend {
 public:
  virtual ~Backend() = default;

  // Returns the time in microseconds that the tuner predicts for a collective, without running it. Fails if there is no
  // prediction.
  virtual Result<double> predict_us(const Call& call, const CommunicatorOptions& options) = 0;
  // Returns how this rank's last collective ran. For a call in a stream, valid after the call has completed.
  virtual LastRun last_run() const = 0;
  // Returns statistics of this rank's collectives so far, including internal ones for split and autotuning.
  virtual CompressionStatistics compression_statistics() const = 0;

  // Returns the error of the communicator. Also looks for failures that peers have not reported, such as dead peers.
  virtual Status failure() = 0;
  // After a failure, waits until no living peer accesses the buffers of this rank's calls, for at most kRemoteAccessMs.
  // All ranks of the communicator count this time from the first wait. This thread must have no other call in progress.
  virtual void wait_for_remote_access() = 0;
  // Ends this rank's calls and saves the results of autotuning. Afterwards no call may follow. Waits for no peer,
  // except for those that calls in progress wait for.
  virtual Status finish() = 0;
  // Called once before the destructor of a device's backend, which must not be called if this returns false: calls, or
  // threads of the parent of a fork(), may still use the backend.
  virtual bool close() { return true; }

  // Collective: gives `child`, which was made of this backend's communicator, a backend for the same memory. Null: the
  // attempt to make one failed.
  virtual Status extend_to(Communicator* /*child*/) { return {}; }
  // Returns this backend if its buffers lie on a device; otherwise null.
  virtual DeviceBackend* on_device() { return nullptr; }
};

// A backend whose calls run in the thread of the caller. Calls on devices are enqueued instead (device/enqueue.h).
class BlockingBackend : public Backend {
 public:
  // Runs the call. Reports a failure to all ranks before it returns.
  virtual Status run(const Call& call, const CommunicatorOptions& options) = 0;
  // Starts the call; the caller drives it beside other operations. Operations start in the order of the calls.
  virtual Result<std::unique_ptr<Operation>> start(const Call& call, const CommunicatorOptions& options) = 0;
  // Called after this rank has left. Waits until every peer has left. Fails if a message between this rank and a peer
  // was not received.
  virtual Status await_leaving() = 0;
};

}  // namespace tutti
