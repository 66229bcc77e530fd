// Order of a communicator's calls, which may be made in several streams.
#include <algorithm>

#include "src/communicator/device/device_communicator.h"
#include "src/communicator/device/turns.h"

namespace tutti {

// A capture does not see work outside of it. Programs must order replays and other calls themselves.
Status DeviceCommunicator::begin(DeviceStream callers, DeviceStream stream) {
  capture_ = TUTTI_TRY(device().capture_of(callers));
  stream_ = stream;
  ++number_;  // Shared by all calls that run side by side: none is done when another begins.
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

// Records one event for all members, since each event costs device time. An event that other communicators share is not
// moved: their later calls may run beside these.
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
