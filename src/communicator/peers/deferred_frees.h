// Deferred frees of memory that a device or another process may still use.
//
// Unmapping host memory and freeing device memory may wait for all kernels of the process. A kernel may wait for the
// calling thread's next call, so such frees wait until no call of the process is in flight. Calls in replays of graphs
// are not counted. All functions are thread-safe.
#pragma once

#include <functional>
#include <memory>

#include "src/communicator/control/board.h"
#include "src/communicator/peers/rank_device_memory.h"

namespace tutti {

// A communicator whose calls deferred frees wait for.
class DeviceCallSource {
 public:
  // `is_idle` returns true if no call is in flight. It is called by any thread, but not while calls are launched.
  explicit DeviceCallSource(std::function<bool()> is_idle);
  ~DeviceCallSource();
  DeviceCallSource(const DeviceCallSource&) = delete;
  DeviceCallSource& operator=(const DeviceCallSource&) = delete;

 private:
  const std::function<bool()> is_idle_;
};

// Held by a thread while it launches calls. No deferred free runs meanwhile.
class LaunchLock {
 public:
  LaunchLock();
  ~LaunchLock();
  LaunchLock(const LaunchLock&) = delete;
  LaunchLock& operator=(const LaunchLock&) = delete;
};

// Runs `free` once no call of the process is in flight: at once, or in a later free_when_idle() or
// run_deferred_frees(). `free` may defer other frees, but must not launch calls.
void free_when_idle(std::function<void()> free);

// Keeps `memory` until the board shows that all ranks of this host have left, or that the communicator has failed.
// Freeing lane memory that other processes have open is undefined behavior.
void keep_until_all_have_left(std::shared_ptr<RankDeviceMemory> memory, const Board& board);

// Runs the frees that nothing delays any more. Called when communicators are created or end, and when a device lacks
// memory.
void run_deferred_frees();

// Frees memory of ended communicators and of the device's cache, once no call of the process is in flight.
void free_cached(const std::shared_ptr<Device>& device);

// Calls a function of the device that allocates. If the device lacks memory, calls free_cached() and retries.
Result<std::byte*> allocate_or_free_cached(const std::shared_ptr<Device>& device,
                                           Result<std::byte*> (Device::*allocate)(std::size_t), std::size_t bytes);

}  // namespace tutti
