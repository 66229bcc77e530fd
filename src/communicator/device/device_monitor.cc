#include "src/communicator/device/device_monitor.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/base/duration.h"
#include "src/base/log.h"
#include "src/communicator/control/mesh.h"
#include "src/communicator/membership/disagreement.h"
#include "src/communicator/planning/planning.h"
#include "src/executor/proxy/proxy.h"

namespace tutti {
namespace {

constexpr std::int64_t kDrainMs = 3000;
constexpr int kDrainPollMs = 1;
constexpr std::int64_t kReportNs = 200'000'000;  // A call without progress for this time is reported to other hosts.
// A rank that has not made a call is logged after this time, or a quarter of the time limit if that is shorter.
constexpr std::int64_t kLateMs = 30'000;
constexpr std::int64_t kLateOfLimit = 4;
constexpr std::int64_t kRecordMs = 1000;  // Maximum wait for the record of a mismatched call.
constexpr const char* kNothingReceived = " has not reported it, and may be late, stopped or in another call";

}  // namespace

DeviceMonitor::DeviceMonitor(ControlPlane& control, PeerSet& peers, const DeviceWindows& windows)
    : control_(control),
      rank_(control.membership.rank),
      ranks_(control.membership.ranks),
      peers_(peers),
      windows_(windows) {}

DeviceMonitor::~DeviceMonitor() = default;

// The proxy ends before `control_` and before the memory in which streams report their ends. It may poll before proxy_
// is set.
Status DeviceMonitor::start(const KernelReports& reports) {
  reports_ = &reports;
  if (!peers_.spans_hosts()) return {};
  ProxyDuty duty;
  duty.connections = peers_.connections();
  for (TcpConnection* connection : control_.membership.mesh.connections()) {
    const auto& lanes = duty.connections;
    if (std::find(lanes.begin(), lanes.end(), connection) == lanes.end()) duty.watched.push_back(connection);
  }
  duty.ended = &reports.progress().ended;
  duty.failed = &reports.progress().report.written;
  duty.look = [this](std::int64_t still_ns) { return poll(still_ns); };
  proxy_ = TUTTI_TRY(Proxy::start(std::move(duty)));
  return {};
}

// ---- Failures ----

bool DeviceMonitor::has_report() const {
  const KernelReports* reports = reports_;
  return reports != nullptr && load_acquire(&reports->progress().report.written) != 0;
}

bool DeviceMonitor::has_failed() const { return board().failed() || has_report(); }

Status DeviceMonitor::failure() {
  if (!board().failed() && has_report()) return control_.failures.fail(explain(reports_.load()->progress().report));
  if (board().failed()) {
    board().stop_thread_blocks();
  } else {
    Status differ = control_.matching.compare_recent(ComparedPeers::all);
    if (!differ.ok()) return control_.failures.fail(std::move(differ));
    report_late_ranks();
  }
  return control_.failures.found(reports_ != nullptr && peers_.network() ? latest_call() : "outside of any call");
}

// Thread blocks cannot log, and may wait for a late rank without limit. Warns once per call. Omits ranks of other
// hosts, whose calls are known only if they wait themselves.
void DeviceMonitor::report_late_ranks() {
  const std::uint64_t last = board().last(rank_);
  const std::int64_t now = now_ns();
  if (seen_call_ != last) {
    seen_ns_ = now;  // First, because several threads run this.
    seen_call_ = last;
  }
  const std::int64_t limit_ms = control_.membership.options.timeout_ms;
  const std::int64_t late_ms = limit_ms > 0 ? std::min(limit_ms / kLateOfLimit, kLateMs) : kLateMs;
  if (now - seen_ns_ < late_ms * 1'000'000 || late_call_ == last) return;
  std::string late;
  for (Rank peer = 0; peer < ranks_; ++peer) {
    if (!board().is_remote(peer) && board().last(peer) < last)
      late += (late.empty() ? "" : ", ") + std::to_string(peer);
  }
  const auto record = board().call(rank_, last);
  if (late.empty() || !record || late_call_.exchange(last) == last) return;
  log(LogLevel::warn, "%s #%llu: rank %u called it %s ago; not called yet by rank %s", describe(*record).c_str(),
      static_cast<unsigned long long>(last), rank_, describe_ms(late_ms).c_str(), late.c_str());
}

// Describes the failed call. The latest calls of this rank are still on the board.
Status DeviceMonitor::explain(const KernelReport& report) {
  const std::string& name = control_.membership.options.name;
  const std::uint64_t last = board().last(rank_);
  std::string call = "a message or an earlier call";
  for (std::uint64_t sequence = last; sequence > 0 && sequence + kCallHistory > last; --sequence) {
    const auto ours = board().call(rank_, sequence);
    if (!ours || signature_of(*ours).word != report.signature) continue;
    call = describe(*ours) + " #" + std::to_string(sequence);
    const bool is_remote = board().is_remote(report.peer);
    if (is_remote && report.mismatch != 0) TUTTI_CHECK_OK(await_call_record(report.peer, sequence));
    const auto theirs = board().call(report.peer, sequence);
    if (theirs && theirs->signature != ours->signature)
      return disagreement(name, {rank_, *ours}, {report.peer, *theirs});
    if (theirs) TUTTI_CHECK_OK(windows_.compare(*ours, report.peer, *theirs));
    if (board().last(report.peer) < sequence)
      call += "; rank " + std::to_string(report.peer) + (is_remote ? kNothingReceived : " has not called it") +
              board().describe_rejection(report.peer);
    break;
  }
  if (!name.empty()) call += " on " + name;
  const std::string where =
      " (channel " + std::to_string(report.channel) + ", step " + std::to_string(report.step) + ")";
  if (report.mismatch != 0) {
    return invalid_usage("rank " + std::to_string(rank_) + " is in " + call + where + ", and what rank " +
                         std::to_string(report.peer) +
                         " sent belongs to another call; make the same calls in the same order on all ranks");
  }
  return timeout_error("rank " + std::to_string(rank_) + " waited too long for rank " + std::to_string(report.peer) +
                       (report.sends != 0 ? " to make room" : "") + " in " + call + where + route_to(report.peer));
}

// Reports this rank's call to other hosts, and awaits the call record of a peer there for kRecordMs. A rank sends its
// record when it makes no progress.
Status DeviceMonitor::await_call_record(Rank peer, std::uint64_t sequence) {
  control_.notifications.report_calls(NotificationKind::call);
  const Deadline deadline = Deadline::after_ms(kRecordMs);
  while (board().last(peer) < sequence && !deadline.passed()) {
    TUTTI_CHECK_OK(control_.failures.found("outside of any call"));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

// Returns "during all_reduce(...) #7", or "after" it.
std::string DeviceMonitor::latest_call() const {
  const std::uint64_t last = board().last(rank_);
  const auto record = board().call(rank_, last);
  const bool under_way = load_acquire(&reports_.load()->progress().ended) != expected_;
  const std::string when = under_way ? "during " : "after ";
  if (messages_ || !record) return under_way ? "during a message" : "outside of any call";
  return when + describe(*record) + " #" + std::to_string(last);
}

std::string DeviceMonitor::route_to(Rank peer) const {
  const Mesh& mesh = control_.membership.mesh;
  return mesh.is_remote(peer) && !peers_.hosts().same_host(rank_, peer) ? " over " + mesh.connection(peer).route() : "";
}

// ---- Calls to other hosts ----

// Called by the proxy's thread. Publishes the report of a thread block even if the program does not ask for it. Returns
// false after a failure.
bool DeviceMonitor::poll(std::int64_t still_ns) {
  // Replays report no number, and calls may be enqueued or captured long before they run.
  const std::uint64_t latest = load_acquire(&reports_.load()->progress().passed) + board().last(rank_);
  const std::int64_t now = now_ns();
  if (std::exchange(polled_call_, latest) != latest) polled_ns_ = now;
  // Messages show progress, and where there are none, the number of calls does.
  const bool still = peers_.network() ? still_ns >= kReportNs : now - polled_ns_ >= kReportNs;
  if (still && std::exchange(reported_after_, latest) != latest)
    control_.notifications.report_calls(NotificationKind::call);
  return failure().ok();
}

Status DeviceMonitor::expect_calls(const DeviceCallOrder& order) {
  if (!has_remote_lanes()) return {};
  if (order.is_captured()) return peers_.own_memory().device().keep_for_graph(order.stream(), proxy_->expect_graph());
  expected_ = static_cast<std::uint32_t>(order.number());
  proxy_->expect(expected_);
  return {};
}

Status DeviceMonitor::report_end(const DeviceCallOrder& order, DeviceStream stream) const {
  if (!has_remote_lanes() || order.is_captured()) return {};
  std::uint32_t* ended = &reports_.load()->progress_on_device()->ended;
  return peers_.own_memory().device().put_word(ended, static_cast<std::uint32_t>(order.number()), stream);
}

void DeviceMonitor::drain() const {
  if (!has_remote_lanes()) return;
  const Deadline deadline = Deadline::after_ms(kDrainMs);
  while (!has_failed() && !peers_.drained() && !deadline.passed()) {
    for (TcpConnection* connection : peers_.connections()) connection->wait(kDrainPollMs);
  }
}

std::uint64_t DeviceMonitor::proxy_rounds() const { return proxy_ == nullptr ? 0 : proxy_->rounds(); }

void DeviceMonitor::stop_polling() {
  if (proxy_ != nullptr) proxy_->stop_polling();
}

void DeviceMonitor::stop_proxy() { proxy_.reset(); }

}  // namespace tutti
