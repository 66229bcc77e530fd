// Calls of communicators on devices, put into their callers' streams.
#pragma once

#include <span>

#include "src/communicator/device/device_communicator.h"

namespace tutti {

struct DeviceCall {
  DeviceCommunicator* communicator = nullptr;
  Call call;
  CommunicatorOptions options;
  DeviceStream stream = nullptr;
};

// Enqueues the calls of a group, or one call. Waits for no peer. For each communicator, collectives run in order,
// then messages at once; different communicators run side by side. An invalid call is found before any call is
// enqueued: then none runs, and the communicators fail, except those whose only call is the refused one. A later
// failure fails all. Throws nothing.
Status enqueue(std::span<const DeviceCall> calls);

}  // namespace tutti
