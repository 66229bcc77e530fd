// Enqueues calls on devices in their callers' streams.
#pragma once

#include <span>

#include "src/communicator/device/device_backend.h"

namespace tutti {

struct DeviceCall {
  Communicator* communicator = nullptr;  // Its buffers lie on a device.
  Call call;
  CommunicatorOptions options;
  DeviceStream stream = nullptr;

  DeviceBackend& backend() const { return *communicator->on_device(); }
};

// Enqueues one call, or the calls of a group, without waiting for peers. For each communicator, collectives run in
// order, then all messages at once. Different communicators run side by side. An invalid call is detected before
// anything is enqueued. Then no call runs and the communicators fail, except those whose only call is the invalid one.
// A later failure fails all communicators. Throws no exceptions.
Status enqueue(std::span<const DeviceCall> calls);

}  // namespace tutti
