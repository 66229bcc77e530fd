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

// The calls of a group, or one alone. Returns when they are enqueued, and waits for no peer. Of each communicator its
// collectives run in their order, then its messages, at once; different communicators run side by side. A call that
// cannot be made is found before any of them: then none runs, and the communicators fail, but those whose only call
// here is refused, and may be made again. Whoever fails later fails all. Throws nothing.
Status enqueue(std::span<const DeviceCall> calls);

}  // namespace tutti
