// Start and end of a communicator's calls in their stream.
#include "src/communicator/device/device_communicator.h"
#include "src/communicator/device/turns.h"

namespace tutti {

Status DeviceCommunicator::begin(DeviceStream callers, DeviceStream stream) {
  TUTTI_CHECK_OK(order_.begin(callers, stream));
  monitor_.expect_calls(order_);
  return {};
}

Status DeviceCommunicator::ask(const DeviceLaunch& launch, DeviceStream stream) {
  return turns_->ask(launch, order_.is_captured() ? Comes::with_a_graph : Comes::once, stream);
}

Status DeviceCommunicator::await_turns(DeviceStream stream) { return turns_->hold(stream); }

Status DeviceCommunicator::end_together(const std::set<DeviceCommunicator*>& members, DeviceStream stream) {
  std::vector<DeviceCallOrder*> orders;
  for (DeviceCommunicator* member : members) {
    TUTTI_CHECK_OK(member->monitor_.report_end(member->order_, stream));
    orders.push_back(&member->order_);
  }
  return DeviceCallOrder::end_together(orders, stream);
}

}  // namespace tutti
