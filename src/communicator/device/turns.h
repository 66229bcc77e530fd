// Runs the calls of a rank that shares its device with ranks beside which it cannot run. Without MPS, a GPU runs its
// processes in time slices, and a waiting thread block would spin through the slice of the peer that it waits for.
//
// The caller's stream only posts a request and is held until the request is done. The launcher thread launches the
// request's thread blocks repeatedly. Each launch ends as soon as its blocks would wait, and the next one resumes them.
// A launch may itself be blocked by work that waits for the held stream. A second thread, the keeper, therefore
// releases streams; it never calls the device.
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

// Arguments of Device::launch().
struct DeviceLaunch {
  KernelBatch batch;
  std::uint32_t count = 0;
  std::uint32_t thread_block_bytes = 0;
};

// Whether a request is made once, or at each replay of a graph.
enum class Comes : std::uint8_t { once, with_a_graph };

class Turns {
 public:
  // Allocates memory. `control` must outlive the result.
  static Result<std::unique_ptr<Turns>> make(std::shared_ptr<Device> device, Communicator& control);
  ~Turns();  // Waits for requests of kind `once`; see quiet(). Not in a child of fork().
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Starts the threads, unless they run. Called before the first call.
  Status start();

  // ask() enqueues a request in `stream`. Requests of different ranks run side by side, those of one rank in stream
  // order. Work enqueued after hold() runs after the last request. After the communicator fails, streams are released
  // and nothing is launched.
  Status ask(const DeviceLaunch& launch, Comes comes, DeviceStream stream);
  Status hold(DeviceStream stream);

  // Ends the service of streams once all requests of kind `once` are done.
  void close();
  // True if no request of kind `once` is pending and no launch is in progress.
  bool quiet();

 private:
  static constexpr std::uint32_t kMaxTurns = 128;  // Thread blocks per request: a collective or the messages of a rank.

  // Shared with streams and thread blocks: whole pages of host memory. The library allocates them itself, because the
  // keeper may still read them at process exit, when the device has freed its own memory.
  struct Desk {
    std::uint32_t requested = 0;  // Number of the request, written by the stream; 0: done.
    TimeSlice turns[kMaxTurns];
  };
  struct Request {
    DeviceLaunch launch;
    Comes comes = Comes::once;
    std::uint32_t number = 0;
    std::uint32_t turns = 0;      // Number of its thread blocks, over all calls.
    std::int64_t timeout_ns = 0;  // Shortest timeout of its calls; 0: none.
  };

  Turns(std::shared_ptr<Device> device, Communicator& control) : device_(std::move(device)), control_(control) {}

  Desk& desk() const { return *reinterpret_cast<Desk*>(memory_.data()); }
  Desk& desk_on_device() const { return *reinterpret_cast<Desk*>(mapped_.device); }
  Result<Request*> note(const DeviceLaunch& launch, Comes comes);
  void forget(const Request& request);

  void end_launcher();
  bool over() const;  // True after the communicator failed.

  // ---- Keeper thread: never calls the device; the only one that releases streams. ----
  void keep();
  Request* next();  // Null: no more requests.
  // Waits until the launcher has finished the request. Gives up some time after a failure or the deadline.
  void await(const Request& request);
  Status held_up(const Request& request) const;

  // ---- Launcher thread ----
  void launch_jobs();
  void run(const Request& request);
  Status launch(const Request& request);
  void end_late_calls(const Request& request, std::int64_t began_ns);
  std::uint32_t count(const Request& request,
                      TimeSliceState state) const;  // Number of its thread blocks in this state.
  std::uint64_t moves_of_peers() const;
  void notify_peers() const;

  const std::shared_ptr<Device> device_;
  Communicator& control_;
  Segment memory_;  // A Desk, padded to whole pages.
  HostMemory mapped_;
  std::atomic<bool> failed_{false};  // A thread block failed, and reported why.
  DeviceStream queue_ = nullptr;
  std::unique_ptr<DeviceEvent> event_;  // After the latest launch.
  std::mutex mutex_;                    // Protects the members below.
  std::condition_variable changed_;     // Wakes the keeper.
  std::condition_variable handed_;      // Wakes the launcher.
  std::map<std::uint32_t, std::unique_ptr<Request>> requests_;
  std::uint32_t latest_ = 0;
  std::uint32_t awaited_ = 0;  // Pending requests of kind `once`.
  std::uint32_t graphs_ = 0;   // Requests made by graphs.
  bool closing_ = false;
  const Request* job_ = nullptr;  // Request that the keeper gave to the launcher.
  bool ended_ = false;
  std::unique_ptr<ServiceThread> keeper_, launcher_;
};

}  // namespace tutti
