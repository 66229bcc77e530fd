#include "src/communicator/device/call_order.h"

#include <algorithm>

namespace tutti {

Status DeviceCallOrder::make_events() {
  latest_ = TUTTI_TRY(device_.make_event());
  captured_ = TUTTI_TRY(device_.make_event());
  joins_ = TUTTI_TRY(device_.make_event());
  serial_ = TUTTI_TRY(device_.make_event());
  return {};
}

Status DeviceCallOrder::begin(DeviceStream callers, DeviceStream stream) {
  capture_ = TUTTI_TRY(device_.capture_of(callers));
  stream_ = stream;
  ++number_;
  if (callers != stream) {
    TUTTI_CHECK_OK(joins_->record(callers));
    TUTTI_CHECK_OK(joins_->hold(stream));
  }
  return order_replays(stream);
}

// The first call of a capture makes each replay wait for earlier calls and replays. Calls outside of captures wait for
// earlier replays. Captures of one communicator must not alternate.
Status DeviceCallOrder::order_replays(DeviceStream stream) {
  if (capture_ == 0) return before_captures_ == nullptr ? Status() : serial_->hold(stream);
  if (capture_ == captured_in_) return {};
  if (before_captures_ == nullptr) before_captures_ = latest_;
  TUTTI_CHECK_OK(before_captures_->hold_in_replays(stream));
  return serial_->hold_in_replays(stream);
}

Status DeviceCallOrder::record_for_replays(DeviceStream stream) const {
  if (capture_ != 0) return serial_->record_in_replays(stream);
  return before_captures_ == nullptr ? Status() : serial_->record(stream);
}

// Records one event for all ranks, since each event costs device time. An event that other ranks or graphs share is not
// moved: their later calls may run beside these.
Status DeviceCallOrder::end_together(std::span<DeviceCallOrder* const> orders, DeviceStream stream) {
  std::shared_ptr<DeviceEvent> event = orders.front()->mark();
  const auto sharers =
      std::count_if(orders.begin(), orders.end(), [&](const auto* order) { return order->mark() == event; });
  if (event.use_count() != sharers + 1) event = TUTTI_TRY(orders.front()->device_.make_event());
  // First, so that whatever waits for `event` waits for these, too: in a capture they are nodes of the graph.
  for (const DeviceCallOrder* order : orders) TUTTI_CHECK_OK(order->record_for_replays(stream));
  TUTTI_CHECK_OK(event->record(stream));
  for (DeviceCallOrder* order : orders) {
    (order->capture_ == 0 ? order->latest_ : order->captured_) = event;
    if (order->capture_ != 0) order->captured_in_ = order->capture_;
  }
  return {};
}

Status DeviceCallOrder::end(DeviceStream callers, DeviceStream stream) const {
  return callers == stream ? Status() : mark()->hold(callers);
}

Result<bool> DeviceCallOrder::is_idle() const {
  if (latest_ == nullptr) return true;
  return latest_->reached();
}

}  // namespace tutti
