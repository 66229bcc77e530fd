// The order of a communicator's calls, which may come in several streams.
#include <algorithm>

#include "src/communicator/device/device_communicator.h"
#include "src/communicator/device/turns.h"

namespace tutti {

// A capture sees nothing of what runs outside of it: there, the program keeps replays and calls apart.
Status DeviceCommunicator::begin(DeviceStream callers, DeviceStream stream) {
  capture_ = TUTTI_TRY(device().capture_of(callers));
  stream_ = stream;
  ++number_;  // Number of all calls that run side by side: none is done when another begins.
  if (proxy_ != nullptr) expect_call();
  if (callers != stream) {
    TUTTI_CHECK_OK(joins_->record(callers));
    TUTTI_CHECK_OK(joins_->hold(stream));
  }
  return {};
}

Status DeviceCommunicator::ask(const DeviceLaunch& launch, DeviceStream stream) {
  return turns_->ask(launch, capture_ == 0 ? Comes::once : Comes::with_a_graph, stream);
}

Status DeviceCommunicator::await_turns(DeviceStream stream) { return turns_->hold(stream); }

// One event for all of them, since each costs the device time. One that somebody else shares stays where it is: whose
// calls come later may run beside ours.
Status DeviceCommunicator::end_together(const std::set<DeviceCommunicator*>& members, DeviceStream stream) {
  std::shared_ptr<DeviceEvent> event = (*members.begin())->mark();
  const auto sharers =
      std::count_if(members.begin(), members.end(), [&](const auto* member) { return member->mark() == event; });
  if (event.use_count() != sharers + 1) event = TUTTI_TRY((*members.begin())->device().make_event());
  for (DeviceCommunicator* member : members) {
    if (member->proxy_ != nullptr) TUTTI_CHECK_OK(member->report_end(stream));
  }
  TUTTI_CHECK_OK(event->record(stream));
  for (DeviceCommunicator* member : members) {
    (member->capture_ == 0 ? member->latest_ : member->captured_) = event;
    if (member->capture_ != 0) member->captured_in_ = member->capture_;
  }
  return {};
}

Status DeviceCommunicator::end(DeviceStream callers, DeviceStream stream) {
  return callers == stream ? Status() : mark()->hold(callers);
}

}  // namespace tutti
