#include "tests/ptx/runtime/state.h"

#include <unistd.h>

#include <algorithm>

#include "src/base/per_thread.h"

namespace tutti::cudart {
namespace {

// A child of a process that has used CUDA cannot use CUDA.
bool is_forked() {
  static const pid_t process = ::getpid();
  return process != ::getpid();
}

// Source: CUDA compatibility guide, "minor version compatibility".
bool supports_runtime(int driver) { return driver / 1000 >= CUDART_VERSION / 1000; }

cudaError_t locked(const std::function<cudaError_t(Lock&)>& body) {
  if (!supports_runtime(node_options().driver)) return cudaErrorInsufficientDriver;
  if (is_forked()) return cudaErrorInitializationError;
  Lock lock(engine().mutex());
  return body(lock);
}

cudaError_t in_context(Lock& lock, const std::function<cudaError_t(Lock&, DeviceState&)>& body) {
  DeviceState& device = current_device_state();
  if (device.fault != cudaSuccess) return device.fault;
  const cudaError_t error = body(lock, device);
  return error == cudaSuccess ? device.fault : error;
}

std::vector<DeviceState>& all_devices() {
  static auto& devices = *[] {
    auto* made = new std::vector<DeviceState>(static_cast<std::size_t>(node_options().devices));
    for (std::size_t i = 0; i < made->size(); ++i) {
      (*made)[i].ordinal = static_cast<int>(i);
      (*made)[i].legacy.device = static_cast<int>(i);
    }
    return made;
  }();
  return devices;
}

}  // namespace

DeviceState& device_state(int ordinal) { return all_devices()[static_cast<std::size_t>(ordinal)]; }
int device_count() { return static_cast<int>(all_devices().size()); }

ThreadState& this_thread() {
  static PerThread<ThreadState> states;  // Clients call the runtime in static destructors, after those of thread_local.
  return *states.get();
}

DeviceState* context_of(CUcontext context) {
  for (DeviceState& device : all_devices()) {
    if (handle_of(device) == context) return &device;
  }
  return nullptr;
}

int current_ordinal() {
  const ThreadState& thread = this_thread();
  return thread.contexts.empty() || thread.contexts.back() == nullptr ? thread.device : thread.contexts.back()->ordinal;
}

DeviceState& current_device_state() {
  ThreadState& thread = this_thread();
  if (thread.contexts.empty()) thread.contexts.push_back(nullptr);
  DeviceState*& current = thread.contexts.back();
  if (current == nullptr) {
    current = &device_state(thread.device);
    current->active = true;
  }
  return *current;
}

cudaError_t without_context(const std::function<cudaError_t(Lock&)>& body) { return keep(locked(body)); }

cudaError_t enter_runtime(const std::function<cudaError_t(Lock&, DeviceState&)>& body) {
  return keep(locked([&](Lock& lock) { return in_context(lock, body); }));
}

CUresult driver_without_context(const std::function<cudaError_t(Lock&)>& body) { return as_driver(locked(body)); }

CUresult enter_driver(const std::function<cudaError_t(Lock&, DeviceState&)>& body) {
  return as_driver(locked([&](Lock& lock) { return in_context(lock, body); }));
}

}  // namespace tutti::cudart
