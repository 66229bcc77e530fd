// Ranks on devices of several hosts: a thread carries what the teams of this one post for other hosts, and what comes
// from there.
#include "src/communicator/device/device_communicator.h"
#include "src/communicator/mesh.h"
#include "src/executor/proxy/proxy.h"

namespace tutti {
namespace {

constexpr std::int64_t kDrainMs = 3000;
constexpr int kDrainLookMs = 1;

}  // namespace

// The proxy outlives neither the control nor the memory where streams tell of their ends.
Status DeviceCommunicator::start_proxy() {
  ProxyDuty duty;
  duty.connections = neighbours_.connections();
  duty.ended = &told().ended;
  duty.look = [control = control_.get()] { return control->failure().ok(); };
  proxy_ = TUTTI_TRY(Proxy::start(std::move(duty)));
  return {};
}

// What graphs replay has no number of its own each time, so nobody is told of its end.
void DeviceCommunicator::expect_call() {
  if (capture_ != 0) return proxy_->expect_graphs();
  proxy_->expect(static_cast<std::uint32_t>(number_));
}

Status DeviceCommunicator::tell_end(DeviceStream stream) {
  if (capture_ != 0) return {};
  auto* on_device = reinterpret_cast<TeamTold*>(told_.device);
  return device().put_word(&on_device->ended, static_cast<std::uint32_t>(number_), stream);
}

// The calls are done, and the peers may still need what they have posted. After a failure nobody does.
void DeviceCommunicator::drain() {
  const Deadline deadline = Deadline::after_ms(kDrainMs);
  while (!has_failed() && !neighbours_.drained() && !deadline.passed()) {
    for (TcpConnection* connection : neighbours_.connections()) connection->wait(kDrainLookMs);
  }
}

std::string DeviceCommunicator::by_network(Rank peer) const {
  if (!mesh()->far(peer)) return "";
  return "; rank " + std::to_string(peer) + " is on another host, by " + mesh()->connection(peer).route();
}

}  // namespace tutti
