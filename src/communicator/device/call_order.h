// Order of one rank's calls, which may be made in several streams and in captures. Calls run in the order in which they
// are made: each waits for an event that follows the previous one. A replay of a graph counts as a call made when it is
// enqueued. From the first capture on, a second event orders replays and other calls: both wait for it and record it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "src/executor/thread_block/device.h"

namespace tutti {

// Not thread-safe. Calls that run side by side begin one after another, and end together.
class DeviceCallOrder {
 public:
  // `device` must outlive this object.
  explicit DeviceCallOrder(Device& device) : device_(device) {}

  // Creates the events. Called once, before the first call.
  Status make_events();

  // Starts calls in `stream`. They run after the work in `callers`; the caller also holds `stream` for latest().
  Status begin(DeviceStream callers, DeviceStream stream);
  // Ends the calls of all ranks in `orders`, which have begun together in `stream`.
  static Status end_together(std::span<DeviceCallOrder* const> orders, DeviceStream stream);
  // Makes later work in `callers` wait for the calls.
  Status end(DeviceStream callers, DeviceStream stream) const;

  // Event after the rank's latest calls, which may be in another stream; null: there are none. Ranks whose calls ran
  // side by side share an event.
  const DeviceEvent* latest() const { return capture_ == 0 || capture_ == captured_in_ ? mark().get() : nullptr; }
  Status hold_for_latest(DeviceStream stream) const { return mark()->hold(stream); }
  // Returns true if all calls outside of captures are done.
  Result<bool> is_idle() const;

  // These describe the calls since the last begin(). They share one number, and are done when a call with a later
  // number has begun.
  std::uint64_t number() const { return number_; }
  bool is_captured() const { return capture_ != 0; }
  DeviceStream stream() const { return stream_; }

 private:
  Status order_replays(DeviceStream stream);
  Status record_for_replays(DeviceStream stream) const;
  const std::shared_ptr<DeviceEvent>& mark() const { return capture_ == 0 ? latest_ : captured_; }

  Device& device_;
  std::shared_ptr<DeviceEvent> latest_;    // After the last call outside of a capture. Shared by ranks.
  std::shared_ptr<DeviceEvent> captured_;  // After the last call of a capture. Shared by ranks.
  std::unique_ptr<DeviceEvent> joins_;     // After the work in the caller's stream.
  std::unique_ptr<DeviceEvent> serial_;    // After the latest replay or call, once a call has been captured.
  // After the last call before the first capture; null until then. It is not moved any more.
  std::shared_ptr<DeviceEvent> before_captures_;
  std::uint64_t capture_ = 0;      // Capture of the calls since the last begin(); 0: not captured.
  std::uint64_t captured_in_ = 0;  // Capture that contains captured_.
  DeviceStream stream_ = nullptr;
  std::uint64_t number_ = 0;
};

}  // namespace tutti
