// Runs the calls of a rank whose buffers are in device memory. Calls are enqueued in the caller's streams (enqueue.h),
// where thread blocks of the device run their plans.
//
// The work is divided among classes, each of which uses only those after it:
//   PreparedDeviceCalls   caches prepared calls; while a call is tuned, for each candidate
//   DeviceCallPreparer    choice (CallPlanner, DevicePlanChooser), plan and lanes (DevicePlans), image in device memory
//   DeviceAutotuning      times candidates of calls, and agrees with the other ranks
//   DeviceJobs            binds a prepared call to buffers, scratch memory and rounding options
//   DeviceMonitor         failures, and the proxy between thread blocks and other hosts
//   DeviceCallOrder       order of calls across streams and captures
//   DeviceWindows         memory that peers access in place
//   KernelReports         host memory in which thread blocks report
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "src/communicator/communicator.h"
#include "src/communicator/device/call_order.h"
#include "src/communicator/device/call_preparer.h"
#include "src/communicator/device/device_jobs.h"
#include "src/communicator/device/device_monitor.h"
#include "src/communicator/device/kernel_reports.h"
#include "src/communicator/device/prepared_calls.h"
#include "src/communicator/device/windows.h"
#include "src/communicator/membership/control_plane.h"
#include "src/communicator/peers/peer_set.h"

namespace tutti {

class DeviceCallSource;
class TimeSlicedLauncher;

class DeviceBackend final : public Backend {
 public:
  // Collective: moves the buffers of `members` from host memory to `device`; blocks until all ranks have done so.
  // Several members must all belong to this process and be driven by this thread.
  static Status attach(const std::vector<Communicator*>& members, const std::shared_ptr<Device>& device);
  ~DeviceBackend() override;
  bool close() override;

  Result<double> predict_us(const Call& call, const CommunicatorOptions& options) override {
    return preparer_.predict_us(call, options);
  }
  LastRun last_run() const override { return statistics_.last_run(); }
  CompressionStatistics compression_statistics() const override { return statistics_.compression(board().last(rank_)); }
  Status failure() override { return monitor_.failure(); }
  void wait_for_remote_access() override;
  Status finish() override;
  Status extend_to(Communicator* child) override;
  DeviceBackend* on_device() override { return this; }

  // Waits for enqueued calls, excluding replays of graphs, and returns failure(). After a failure, also waits until
  // thread blocks have left this rank's memory, like wait_for_remote_access().
  Status await_own_calls();

  // Registers memory that peers may access, see windows.h. No call may use a window once it is deregistered. After a
  // failure, opened windows stay open until the communicator ends.
  Result<WindowHandle> register_window(const WindowBuffer& own);
  bool has_window(WindowHandle window) const { return windows_.contains(window); }
  Status deregister_window(WindowHandle window);
  // Number of polls of the proxy; 0 without a proxy. For tests.
  std::uint64_t proxy_rounds() const { return monitor_.proxy_rounds(); }

  Rank rank() const { return rank_; }
  Rank ranks() const { return ranks_; }
  Device& device() const { return own_memory().device(); }
  const PeerSet& peers() const { return peers_; }
  const DeviceWindows& windows() const { return windows_; }
  std::size_t device_bytes() const { return own_memory().bytes(); }  // Device memory allocated so far. Thread-safe.

  // ---- For enqueue.cc, which uses these functions in call order, and call_schedule.cc. ----
  bool has_failed() const { return monitor_.has_failed(); }  // Without asking peers; failure() returns the reason.
  // Does everything for a call that can fail or allocate memory, before peers see any call of its group. `roundings`
  // counts the communicator's calls in the group so far that need a rounding buffer.
  Status prepare(const Call& call, const CommunicatorOptions& options, std::size_t& roundings);
  // True if copy engines run the call, which then needs a launch before and after its copies.
  bool by_copy_engines(const Call& call, const CommunicatorOptions& options) const {
    return preparer_.by_copy_engines(call, options);
  }
  // Stream for calls by copy engines in the default stream; null before the first one was prepared.
  DeviceStream queue() const { return queue_; }
  // Undoes prepare() for all calls that were not made.
  void cancel_prepared() { calls_.cancel(); }
  Result<DeviceJob> collective(const Call& call, const CommunicatorOptions& options);
  Result<DeviceJob> message(const Call& call, const CommunicatorOptions& options);
  std::uint32_t message_channels(const Call& call) const { return preparer_.message_channels(call); }
  // Starts calls in `stream`. They run after the work in `callers`; the caller also holds `stream` for latest().
  Status begin(DeviceStream callers, DeviceStream stream);
  const DeviceCallOrder& order() const { return order_; }
  // True if the autotuner tries candidates and times calls.
  bool is_tuned() const { return preparer_.autotuning() != nullptr; }
  // Enclose the work of a call in its stream, provided the stream has no other work meanwhile. A call under test by the
  // autotuner is timed.
  Status start_timing(const Call& call, DeviceStream stream);
  Status end_timing(DeviceStream stream);
  // With time slicing, requests the launches of calls. Null: calls are launched directly.
  TimeSlicedLauncher* launcher() const { return launcher_.get(); }
  // Ends the calls of all `members`, which have begun together in `stream`.
  static Status end_together(const std::set<DeviceBackend*>& members, DeviceStream stream);

 private:
  static Status attach_all(const std::vector<Communicator*>& members, const std::shared_ptr<Device>& device);
  DeviceBackend(Communicator& communicator, PeerSet peers);
  const Board& board() const { return control_->membership.board; }
  RankDeviceMemory& own_memory() const { return peers_.own_memory(); }
  Status set_up_device();
  bool only_copies(const Call& call) const;  // True for collectives of a single rank.
  // Numbers a collective and shows it to the other ranks. Fails if ranks pass different windows.
  Status announce(CallRecord& record, const Call& call);
  void reclaim_memory();
  bool is_idle() const;  // True if no call is in flight, replays of graphs excluded.

  const int process_;                            // Process that created it.
  const std::shared_ptr<ControlPlane> control_;  // Kept while the device may use the board.
  const Rank rank_, ranks_;
  PeerSet peers_;
  DeviceWindows windows_;
  DeviceCallOrder order_;
  DeviceMonitor monitor_;
  DeviceCallPreparer preparer_;
  PreparedDeviceCalls calls_{preparer_};
  DeviceJobs jobs_;
  std::unique_ptr<KernelReports> reports_;        // Null until the device is set up.
  std::unique_ptr<TimeSlicedLauncher> launcher_;  // Null: no time slicing; thread blocks wait on the device.
  std::unique_ptr<DeviceCallSource> source_;      // Null until the device is set up.
  DeviceStream queue_ = nullptr;                  // See queue().
  RunStatistics statistics_;
};

}  // namespace tutti
