// Detects failures of one rank's calls on a device, and explains them. Sources are the reports of thread blocks, the
// peers' calls on the board, and the control connections. If the communicator spans hosts, also runs the proxy, which
// moves messages between this rank's thread blocks and other hosts, and tells it which calls to expect. If NVLinks
// connect all hosts, the proxy only watches the control connections.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "src/communicator/device/call_order.h"
#include "src/communicator/device/kernel_reports.h"
#include "src/communicator/device/windows.h"
#include "src/communicator/membership/control_plane.h"
#include "src/communicator/peers/peer_set.h"

namespace tutti {

class Proxy;

// Not thread-safe, except has_failed() and failure().
class DeviceMonitor {
 public:
  // All arguments must outlive this object.
  DeviceMonitor(ControlPlane& control, PeerSet& peers, const DeviceWindows& windows);
  ~DeviceMonitor();

  // Reads the reports of thread blocks from now on, and starts the proxy if there are ranks on other hosts. Called
  // once, before the first call. `reports` must outlive all further use of this object.
  Status start(const KernelReports& reports);

  // True if thread blocks, or any rank on the board, have failed. Does not ask the peers.
  bool has_failed() const;
  // Returns the error of the communicator. Also compares this rank's calls with those of the peers, because thread
  // blocks of different calls may wait for each other until their deadline.
  Status failure();

  // ---- Calls to other hosts over the network. No effect without lanes to them. ----
  // Sets the kind of the calls since the last begin().
  void set_kind(Kind kind) { messages_ = kind != Kind::collective; }
  // Announces the calls that `order` has just begun. Runs of a replayed graph have no numbers: their ends are unknown.
  Status expect_calls(const DeviceCallOrder& order);
  // Reports the end of the calls of `order` after the work in `stream`.
  Status report_end(const DeviceCallOrder& order, DeviceStream stream) const;
  // Waits until peers have received all data of the finished calls. Does not wait after a failure.
  void drain() const;
  // Number of polls of the proxy.
  std::uint64_t proxy_rounds() const;
  // The proxy uses this object no more. It may still serve thread blocks.
  void stop_polling();
  // Ends the proxy.
  void stop_proxy();

 private:
  const Board& board() const { return control_.membership.board; }
  bool has_report() const;
  bool has_remote_lanes() const { return proxy_ != nullptr && peers_.network(); }
  bool poll(std::int64_t still_ns);
  Status await_call_record(Rank peer, std::uint64_t sequence);
  Status explain(const KernelReport& report);
  void report_late_ranks();
  std::string latest_call() const;
  std::string route_to(Rank peer) const;

  ControlPlane& control_;
  const Rank rank_, ranks_;
  PeerSet& peers_;
  const DeviceWindows& windows_;
  std::atomic<const KernelReports*> reports_{nullptr};  // Null until start(). For any thread.
  std::unique_ptr<Proxy> proxy_;                        // Null: all ranks are on one host.
  // Latest call of this rank that failure() has seen, since when, and the last call of which it has logged late ranks.
  std::atomic<std::uint64_t> seen_call_{0}, late_call_{0};
  std::atomic<std::int64_t> seen_ns_{0};
  // See poll(): the calls when they were last reported to other hosts, those at the last poll, and since when.
  std::uint64_t reported_after_ = ~0ULL, polled_call_ = 0;
  std::int64_t polled_ns_ = 0;
  std::atomic<bool> messages_ = false;      // The latest calls are messages.
  std::atomic<std::uint32_t> expected_{0};  // Latest call that the proxy expects.
};

}  // namespace tutti
