// Devices, contexts and streams of the process, and the state of a thread. All functions require the runtime's lock
// unless stated otherwise.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "tests/ptx/runtime/engine.h"
#include "tests/ptx/runtime/errors.h"
#include "tests/ptx/runtime/node.h"

namespace tutti::cudart {

struct Capture;
struct GraphNode;
struct Kernel;

struct Stream {
  int device = 0;
  bool blocking = true;  // Synchronises with the legacy default stream.
  int priority = 0;
  unsigned long long id = 0;
  TaskPtr last;                          // The last task; null if there is none.
  std::size_t queue = 0;                 // Hardware queue of the device, among those of the same priority.
  std::shared_ptr<Capture> capture;      // Null if not capturing.
  std::vector<GraphNode*> dependencies;  // Nodes that the next captured operation depends on.
};

// A device with its primary context, the only context of the device.
struct DeviceState {
  int ordinal = 0;
  bool active = false;  // The primary context exists.
  cudaError_t fault = cudaSuccess;
  std::set<int> reaches;                      // Devices to whose memory peer access is enabled.
  std::set<const Kernel*> fits_local_memory;  // Kernels with local memory that have been launched.
  Stream legacy;
  std::set<Stream*> streams;                              // Created streams, and per-thread default streams.
  std::vector<TaskPtr> orphans;                           // Ends of destroyed streams.
  std::map<std::pair<int, std::size_t>, TaskPtr> queues;  // Last task of each hardware queue, by priority and number.
  std::map<int, std::size_t> streams_made;                // By priority.
};

// The arguments of a launch between `<<<` and `>>>`.
struct CallConfiguration {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

struct ThreadState {
  int device = 0;                      // Device of a context that the next call creates.
  std::vector<DeviceState*> contexts;  // Stack of contexts; the last is current.
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
  std::map<int, Stream*> own_streams;  // Per-thread default streams by device; never destroyed.
  std::vector<CallConfiguration> configurations;
};

DeviceState& device_state(int ordinal);
int device_count();
ThreadState& this_thread();  // Requires no lock.
inline bool is_device(int ordinal) { return ordinal >= 0 && ordinal < device_count(); }

inline CUcontext handle_of(DeviceState& device) { return reinterpret_cast<CUcontext>(&device); }
DeviceState* context_of(CUcontext context);  // Null for an unknown handle.

// The device that cudaGetDevice() returns. Creates no context.
int current_ordinal();
// Returns the device of the current context. Creates the primary context if the thread has none.
DeviceState& current_device_state();

// Runs a function of the runtime: locks, makes a context current, returns the device's fault if there is one, and keeps
// the error. `body` is called with the lock and the current device.
cudaError_t enter_runtime(const std::function<cudaError_t(Lock&, DeviceState&)>& body);
// Like enter_runtime(), for functions that need no context.
cudaError_t without_context(const std::function<cudaError_t(Lock&)>& body);
// Like enter_runtime(), for functions of the driver: they keep no error.
CUresult enter_driver(const std::function<cudaError_t(Lock&, DeviceState&)>& body);
// Like enter_driver(), for functions that need no context.
CUresult driver_without_context(const std::function<cudaError_t(Lock&)>& body);

}  // namespace tutti::cudart
