#pragma once
// End of a process group, and of all groups that a program leaves open.

#include <memory>

#include "python/tutti/torch/native/call_queue.h"
#include "python/tutti/torch/native/callback_thread.h"
#include "python/tutti/torch/native/communicator.h"
#include "python/tutti/torch/native/device_calls.h"
#include "python/tutti/torch/native/hooks.h"

namespace tutti_torch {

// Communicators and threads of a group. Thread-safe.
struct GroupEnding {
  std::shared_ptr<Communicator> communicator;
  std::shared_ptr<CallQueue> queue;
  std::shared_ptr<DeviceCalls> device_calls;
  std::shared_ptr<CallbackThread> callbacks;
  std::shared_ptr<Hooks> hooks;

  // Waits for this rank's calls, callbacks and hooks, and ends the communicators. Idempotent. Releases the GIL.
  void shutdown();
};

// Makes `ending` part of end_open_groups().
void add_open_group(const std::shared_ptr<GroupEnding>& ending);

// Ends all groups of this process. Python calls it before it ends, because threads cannot run callbacks afterwards.
void end_open_groups(OpenCalls calls);

}  // namespace tutti_torch
