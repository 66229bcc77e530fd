// Start and end of a communicator's calls in their stream.
#include "src/communicator/device/device_communicator.h"
#include "src/communicator/device/turns.h"

namespace tutti {

Status DeviceCommunicator::begin(DeviceStream callers, DeviceStream stream) {
  TUTTI_CHECK_OK(order_.begin(callers, stream));
  if (proxy_ != nullptr) expect_call();
  return {};
}

Status DeviceCommunicator::ask(const DeviceLaunch& launch, DeviceStream stream) {
  return turns_->ask(launch, order_.is_captured() ? Comes::with_a_graph : Comes::once, stream);
}

Status DeviceCommunicator::await_turns(DeviceStream stream) { return turns_->hold(stream); }

Status DeviceCommunicator::end_together(const std::set<DeviceCommunicator*>& members, DeviceStream stream) {
  std::vector<DeviceCallOrder*> orders;
  for (DeviceCommunicator* member : members) {
    if (member->proxy_ != nullptr) TUTTI_CHECK_OK(member->report_end(stream));
    orders.push_back(&member->order_);
  }
  return DeviceCallOrder::end_together(orders, stream);
}

}  // namespace tutti
