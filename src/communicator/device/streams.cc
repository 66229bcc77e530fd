// The order of a communicator's calls, which may come in several streams.
#include "src/communicator/device/device_communicator.h"
#include "src/communicator/device/turns.h"

namespace tutti {

// A capture sees nothing of what runs outside of it: there, the program keeps replays and calls apart.
Status DeviceCommunicator::begin(DeviceStream callers, DeviceStream stream) {
  capture_ = TUTTI_TRY(device().capture_of(callers));
  ++number_;  // Of all that run side by side: none of them is done when another begins.
  if (callers != stream) {
    TUTTI_CHECK_OK(joins_->record(callers));
    TUTTI_CHECK_OK(joins_->hold(stream));
  }
  if (capture_ != 0) return capture_ == captured_in_ ? captured_->hold(stream) : Status();
  return latest_->hold(stream);
}

Status DeviceCommunicator::ask(const DeviceLaunch& launch, DeviceStream stream) {
  return turns_->ask(launch, capture_ == 0 ? Comes::once : Comes::with_a_graph, stream);
}

Status DeviceCommunicator::await_turns(DeviceStream stream) { return turns_->hold(stream); }

Status DeviceCommunicator::end(DeviceStream callers, DeviceStream stream) {
  DeviceEvent& event = capture_ == 0 ? *latest_ : *captured_;
  if (capture_ != 0) captured_in_ = capture_;
  TUTTI_CHECK_OK(event.record(stream));
  return callers == stream ? Status() : event.hold(callers);
}

}  // namespace tutti
