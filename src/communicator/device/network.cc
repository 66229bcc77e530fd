// Ranks on devices of several hosts. The proxy moves messages between this rank's thread blocks and other hosts.
#include <chrono>
#include <thread>
#include <utility>

#include "src/base/atomic.h"
#include "src/communicator/control/mesh.h"
#include "src/communicator/device/device_communicator.h"
#include "src/executor/proxy/proxy.h"

namespace tutti {
namespace {

constexpr std::int64_t kDrainMs = 3000;
constexpr int kDrainLookMs = 1;
constexpr std::int64_t kReportNs = 200'000'000;  // A call without progress for this time is reported to other hosts.
constexpr std::int64_t kRecordMs = 1000;         // Maximum wait for the record of a mismatched call.

}  // namespace

// The proxy ends before `control_` and before the memory in which streams report their ends. It outlives this object
// only if it is leaked, and then polls it no more. It may poll before proxy_ is set.
Status DeviceCommunicator::start_proxy() {
  ProxyDuty duty;
  duty.connections = peers_.connections();
  duty.ended = &reported().ended;
  duty.failed = &reported().report.written;
  duty.look = [this](std::int64_t still_ns) { return look(still_ns); };
  proxy_ = TUTTI_TRY(Proxy::start(std::move(duty)));
  return {};
}

// Called by the proxy's thread. Publishes the report of a thread block even if the program does not ask for it. Returns
// false after a failure.
bool DeviceCommunicator::look(std::int64_t still_ns) {
  const std::uint64_t begun = load_acquire(&reported().begun);
  if (still_ns >= kReportNs && std::exchange(reported_call_, begun) != begun) control_->report_last_call();
  return failure().ok();
}

// Handles the call record of a rank of another host, which that rank sends when it makes no progress.
Status DeviceCommunicator::receive_call(Rank peer, std::uint64_t sequence) {
  control_->report_last_call();
  const Deadline deadline = Deadline::after_ms(kRecordMs);
  while (board().last(peer) < sequence && !deadline.passed()) {
    TUTTI_CHECK_OK(control_->failure());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

std::uint64_t DeviceCommunicator::proxy_rounds() const { return proxy_ == nullptr ? 0 : proxy_->rounds(); }

// Runs of a replayed graph have no numbers, so their ends are not reported.
void DeviceCommunicator::expect_call() {
  if (order_.is_captured()) return proxy_->expect_graphs();
  expected_ = static_cast<std::uint32_t>(order_.number());
  proxy_->expect(expected_);
}

Status DeviceCommunicator::report_end(DeviceStream stream) {
  if (order_.is_captured()) return {};
  auto* on_device = reinterpret_cast<KernelProgress*>(reported_.device);
  return device().put_word(&on_device->ended, static_cast<std::uint32_t>(order_.number()), stream);
}

// Waits until peers have received all data of the finished calls. Does not wait after a failure.
void DeviceCommunicator::drain() {
  const Deadline deadline = Deadline::after_ms(kDrainMs);
  while (!has_failed() && !peers_.drained() && !deadline.passed()) {
    for (TcpConnection* connection : peers_.connections()) connection->wait(kDrainLookMs);
  }
}

// "during all_reduce(...) #7", or after it.
std::string DeviceCommunicator::latest_call() const {
  const std::uint64_t last = board().last(rank_);
  const auto record = board().call(rank_, last);
  const bool under_way = load_acquire(&reported().ended) != expected_;
  const std::string when = under_way ? "during " : "after ";
  if (messages_ || !record) return under_way ? "during a message" : "outside of any call";
  return when + describe(*record) + " #" + std::to_string(last);
}

std::string DeviceCommunicator::by_network(Rank peer) const {
  if (!mesh()->is_remote(peer)) return "";
  return " over " + mesh()->connection(peer).route();
}

}  // namespace tutti
