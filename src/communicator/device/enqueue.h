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
// collectives run in their order, then its messages, at once; different communicators run side by side. A communicator
// whose call fails runs no more of them, and fails for good if there were more, or if it had begun. Returns the first
// failure. Throws nothing.
Status enqueue(std::span<const DeviceCall> calls);

}  // namespace tutti
