// Time slicing: runs the calls of a rank that shares its device with ranks beside which it cannot run. Without MPS, a
// GPU runs its processes in time slices, and a waiting thread block would spin through the slice of the peer that it
// waits for.
//
// The caller's stream only posts a request in a mailbox and is held until the request is done. The launch thread
// launches the request's thread blocks repeatedly. Each launch ends as soon as its blocks would wait, and the next one
// resumes them. A launch may itself be blocked by work that waits for the held stream. A second thread, the stream
// server, therefore releases streams; it never calls the device.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/service_thread.h"
#include "src/communicator/device/prepared_call.h"
#include "src/communicator/membership/control_plane.h"
#include "src/communicator/peers/mapped_segment.h"
#include "src/executor/thread_block/device.h"

namespace tutti {

// single: a request is made once. replayed: it is made at each replay of a graph.
enum class RequestKind : std::uint8_t { single, replayed };

class TimeSlicedLauncher {
 public:
  // Allocates memory. `control` must outlive the result.
  static Result<std::unique_ptr<TimeSlicedLauncher>> make(std::shared_ptr<Device> device, ControlPlane& control);
  ~TimeSlicedLauncher();  // Waits for requests of kind `single`; see is_idle(). Not in a child of fork().
  TimeSlicedLauncher(const TimeSlicedLauncher&) = delete;
  TimeSlicedLauncher& operator=(const TimeSlicedLauncher&) = delete;

  // Starts the threads, unless they run. Called before the first call.
  Status start();

  // request() enqueues a request in `stream`. Requests of different ranks run side by side, those of one rank in stream
  // order. Work enqueued after hold() runs after the last request. After the communicator fails, streams are released
  // and nothing is launched.
  Status request(const DeviceLaunch& launch, RequestKind kind, DeviceStream stream);
  Status hold(DeviceStream stream);

  // Ends the service of streams once all requests of kind `single` are done.
  void close();
  // True if no request of kind `single` is pending and no launch is in progress.
  bool is_idle();

 private:
  // Maximum of a request: a collective, or the messages of a rank.
  static constexpr std::uint32_t kMaxThreadBlocks = 128;

  // Shared with streams and thread blocks: whole pages of host memory. The library allocates them itself, because the
  // stream server may still read them at process exit, when the device has freed its own memory.
  struct Mailbox {
    std::uint32_t requested = 0;  // Number of the request, written by the stream; 0: done.
    ThreadBlockProgress blocks[kMaxThreadBlocks];
  };
  struct Request {
    DeviceLaunch launch;
    RequestKind kind = RequestKind::single;
    std::uint32_t number = 0;
    std::uint32_t thread_blocks = 0;  // Over all calls.
    std::int64_t timeout_ns = 0;      // Shortest timeout of its calls; 0: none.
  };

  TimeSlicedLauncher(std::shared_ptr<Device> device, ControlPlane& control)
      : device_(std::move(device)), control_(control) {}

  // Requests of graphs that no longer exist. Graphs share it: they may outlive the launcher, and end in any thread.
  struct Ended {
    std::mutex mutex;
    std::vector<std::uint32_t> numbers;
    std::size_t leases = 0;  // Graphs that exist, and numbers above.
  };

  Mailbox& mailbox() const { return *reinterpret_cast<Mailbox*>(memory_->data()); }
  Result<Request*> add_request(const DeviceLaunch& launch, RequestKind kind);
  void remove_request(const Request& request);
  // Returns an object that a graph keeps as long as it may make the request.
  std::shared_ptr<void> lease(std::uint32_t number);

  void stop_launch_thread();
  bool has_failed() const;  // True after the communicator, or a thread block of this rank, failed.

  // ---- Stream server thread: never calls the device; the only one that releases streams. ----
  void serve_streams();
  Request* next_request();       // Null: no more requests.
  void remove_ended_requests();  // Requires mutex_.
  // Waits until the launch thread has finished the request. Gives up some time after a failure or the deadline.
  void await_launch_thread(const Request& request);
  Status blocked_error(const Request& request) const;

  // ---- Launch thread ----
  void run_launch_thread();
  void run_request(const Request& request);
  Status launch(const Request& request);
  void mark_late_calls(const Request& request, std::int64_t began_ns);
  // Returns the number of thread blocks of the request in this state.
  std::uint32_t count(const Request& request, ThreadBlockState state) const;
  std::uint64_t progress_of_peers() const;
  void notify_peers() const;

  const std::shared_ptr<Device> device_;
  ControlPlane& control_;
  std::unique_ptr<MappedSegment> memory_;  // A Mailbox, padded to whole pages.
  Mailbox* mailbox_on_device_ = nullptr;
  std::atomic<bool> failed_{false};  // A thread block failed, and reported why.
  DeviceStream queue_ = nullptr;
  std::unique_ptr<DeviceEvent> event_;  // After the latest launch.
  std::mutex mutex_;                    // Protects the members below.
  std::condition_variable changed_;     // Wakes the stream server.
  std::condition_variable job_given_;   // Wakes the launch thread.
  std::map<std::uint32_t, std::unique_ptr<Request>> requests_;
  std::uint32_t latest_ = 0;
  std::uint32_t pending_ = 0;   // Pending requests of kind `single`.
  std::uint32_t replayed_ = 0;  // Requests made by graphs.
  bool closing_ = false;
  const Request* job_ = nullptr;  // Request that the stream server gave to the launch thread.
  bool stopping_ = false;         // The launch thread is to end.
  const std::shared_ptr<Ended> ended_ = std::make_shared<Ended>();
  std::unique_ptr<LibraryThread> stream_server_, launch_thread_;
};

}  // namespace tutti
