// The calls of a rank that shares its device with ranks which it cannot run beside: a GPU without MPS gives its
// processes turns in time, and a thread block that waits would burn the turn of the peer that it waits for. So the
// caller's stream only tells that a call has come, and is held until it is done. A thread launches the call's thread
// blocks again and again; each launch ends as soon as they wait, and the next takes them up from there. A launch may
// itself be held up by what waits for the held stream; so another thread, which asks nothing of the device, lets
// streams go.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "src/base/service_thread.h"
#include "src/communicator/communicator.h"
#include "src/executor/thread_block/device.h"
#include "transports/shm/segment.h"

namespace tutti {

// What Device::launch() takes.
struct DeviceLaunch {
  KernelBatch batch;
  std::uint32_t count = 0;
  std::uint32_t thread_block_bytes = 0;
};

// Whether a request comes once, or whenever a graph is replayed.
enum class Comes : std::uint8_t { once, with_a_graph };

class Turns {
 public:
  // Takes memory. Outlived by `control`.
  static Result<std::unique_ptr<Turns>> make(std::shared_ptr<Device> device, Communicator& control);
  ~Turns();  // Waits for what was asked to come once; see quiet(). Not in a child of fork().
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // The threads, before the first call.
  Status start();

  // Requests run side by side, in stream order; requests of one rank follow each other. Work in the stream after
  // hold() runs after the last of them. Once the communicator has failed, its streams are released and nothing is
  // launched.
  Status ask(const DeviceLaunch& launch, Comes comes, DeviceStream stream);
  Status hold(DeviceStream stream);

  // From now on no stream is looked after any more as soon as what was asked to come once is done.
  void close();
  // Whether it is, and no launch is under way.
  bool quiet();

 private:
  static constexpr std::uint32_t kMaxTurns =
      128;  // ThreadBlocks of one request: of a rank's collective, or its messages.

  // Whole pages of the host, where streams and thread blocks reach them. They are ours: the thread may still look there
  // when the process ends, and the device has taken its own memory away.
  struct Desk {
    std::uint32_t asked = 0;  // A request's number, by the stream; 0: it is done.
    KernelTurn turns[kMaxTurns];
  };
  struct Request {
    DeviceLaunch launch;
    Comes comes = Comes::once;
    std::uint32_t number = 0;
    std::uint32_t turns = 0;      // Launches of its thread blocks.
    std::int64_t timeout_ns = 0;  // The shortest of its calls; 0: none.
  };

  Turns(std::shared_ptr<Device> device, Communicator& control) : device_(std::move(device)), control_(control) {}

  Desk& desk() const { return *reinterpret_cast<Desk*>(memory_.data()); }
  Desk& desk_on_device() const { return *reinterpret_cast<Desk*>(mapped_.device); }
  Result<Request*> note(const DeviceLaunch& launch, Comes comes);
  void forget(const Request& request);

  void end_launcher();
  bool over() const;  // The communicator has failed.

  // ---- Of the keeper: nothing is asked of the device. It alone lets streams go. ----
  void keep();
  Request* next();  // Null: it is over.
  // Until the launcher has done it, or, some time after a failure or the deadline, is held up.
  void await(const Request& request);
  Status held_up(const Request& request) const;

  // ---- Of the launcher ----
  void launch_jobs();
  void run(const Request& request);
  Status launch(const Request& request);
  void end_late_calls(const Request& request, std::int64_t began_ns);
  std::uint32_t count(const Request& request, TurnState state) const;  // Number of its thread blocks in this state.
  std::uint64_t moves_of_peers() const;
  void notify_peers() const;

  const std::shared_ptr<Device> device_;
  Communicator& control_;
  Segment memory_;  // A Desk, and the rest of its last page.
  HostMemory mapped_;
  std::atomic<bool> failed_{false};  // Some thread block has: it has reported why.
  DeviceStream queue_ = nullptr;
  std::unique_ptr<DeviceEvent> event_;  // After the latest launch.
  std::mutex mutex_;                    // Protects the members below.
  std::condition_variable changed_;     // For the keeper,
  std::condition_variable handed_;      // and for the launcher.
  std::map<std::uint32_t, std::unique_ptr<Request>> requests_;
  std::uint32_t latest_ = 0;
  std::uint32_t awaited_ = 0;  // That come once,
  std::uint32_t graphs_ = 0;   // and with graphs.
  bool closing_ = false;
  const Request* job_ = nullptr;  // The launcher's, from the keeper.
  bool ended_ = false;
  std::unique_ptr<ServiceThread> keeper_, launcher_;
};

}  // namespace tutti
