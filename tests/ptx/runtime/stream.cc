#include "tests/ptx/runtime/stream.h"

#include <algorithm>

namespace tutti::cudart {
namespace {

unsigned long long next_stream_id() {
  static unsigned long long last = 2;  // The default streams have fixed numbers.
  return ++last;
}

Stream& own_stream(DeviceState& device) {
  Stream*& stream = this_thread().own_streams[device.ordinal];
  if (stream == nullptr) {
    stream = new Stream;
    stream->device = device.ordinal;
    stream->id = next_stream_id();
    device.streams.insert(stream);
  }
  return *stream;
}

bool is_legacy(const Stream& stream) { return &stream == &device_state(stream.device).legacy; }

// The tasks that precede a new operation of the stream: its own, and those of streams that it synchronises with.
std::vector<TaskPtr> predecessors(const Stream& stream) {
  DeviceState& device = device_state(stream.device);
  std::vector<TaskPtr> before = {stream.last};
  if (is_legacy(stream)) {
    for (const Stream* each : device.streams) {
      if (each->blocking) before.push_back(each->last);
    }
    before.insert(before.end(), device.orphans.begin(), device.orphans.end());
  } else if (stream.blocking) {
    before.push_back(device.legacy.last);
  }
  return before;
}

}  // namespace

Stream* stream_of(cudaStream_t handle, DeviceState& current) {
  if (handle == nullptr || handle == cudaStreamLegacy) return &current.legacy;
  if (handle == cudaStreamPerThread) return &own_stream(current);
  auto* stream = reinterpret_cast<Stream*>(handle);
  for (int i = 0; i < device_count(); ++i) {
    if (device_state(i).streams.count(stream) != 0) return stream;
  }
  return nullptr;
}

TaskPtr append(Stream& stream, std::unique_ptr<Work> work, std::vector<TaskPtr> before) {
  DeviceState& device = device_state(stream.device);
  const std::vector<TaskPtr> own = predecessors(stream);  // First, since the task continues the chain of the first.
  before.insert(before.begin(), own.begin(), own.end());
  TaskPtr& queue = device.queues[{stream.priority, stream.queue}];
  queue = engine().add(stream.device, std::move(work), before, queue);
  stream.last = queue;
  return queue;
}

cudaError_t enqueue(Stream& stream, Operation operation, TaskPtr* task) {
  if (stream.capture != nullptr) {
    if (stream.capture->invalid) return cudaErrorStreamCaptureInvalidated;
    capture_node(stream, operation.type, std::move(operation.make)).needs_local_memory = operation.needs_local_memory;
    return cudaSuccess;
  }
  if (is_legacy(stream)) {
    const cudaError_t error = forbid_implicit_dependency(device_state(stream.device));
    if (error != cudaSuccess) return error;
  }
  const TaskPtr added = append(stream, operation.make == nullptr ? nullptr : operation.make(), {});
  if (task != nullptr) *task = added;
  return cudaSuccess;
}

std::vector<TaskPtr> ends_of(Stream& stream) {
  return is_legacy(stream) ? predecessors(stream) : std::vector<TaskPtr>{stream.last};
}

std::vector<TaskPtr> ends_of(DeviceState& device) {
  std::erase_if(device.orphans, [](const TaskPtr& task) {
    if (task->done) engine().observe(*task);  // The caller waits for the device.
    return task->done;
  });
  return last_tasks(device);
}

std::vector<TaskPtr> last_tasks(const DeviceState& device) {
  std::vector<TaskPtr> tasks = device.orphans;
  tasks.push_back(device.legacy.last);
  for (const Stream* stream : device.streams) tasks.push_back(stream->last);
  return tasks;
}

bool have_ended(const std::vector<TaskPtr>& tasks) {
  return std::all_of(tasks.begin(), tasks.end(), [](const TaskPtr& task) { return task == nullptr || task->done; });
}

void await_all(Lock& lock, const char* what, const std::vector<TaskPtr>& tasks) {
  engine().await(lock, what, [&tasks] { return have_ended(tasks); });
  for (const TaskPtr& task : tasks) {
    if (task != nullptr) engine().observe(*task);
  }
}

bool are_done(const std::vector<TaskPtr>& tasks) {
  if (!have_ended(tasks)) return false;
  for (const TaskPtr& task : tasks) {
    if (task != nullptr) engine().observe(*task);
  }
  return true;
}

}  // namespace tutti::cudart

// ---- The public functions ----

namespace {

using namespace tutti::cudart;

cudaError_t make_stream(cudaStream_t* made, unsigned flags, int priority) {
  return enter_runtime([&](Lock&, DeviceState& device) {
    if (made == nullptr || (flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) != 0) return cudaErrorInvalidValue;
    auto* stream = new Stream;
    stream->device = device.ordinal;
    stream->blocking = (flags & cudaStreamNonBlocking) == 0;
    stream->priority = priority;
    stream->id = next_stream_id();
    stream->queue = ++device.streams_made[priority] % static_cast<std::size_t>(node_options().queues);
    device.streams.insert(stream);
    *made = reinterpret_cast<cudaStream_t>(stream);
    return cudaSuccess;
  });
}

// Runs `body` with the stream of a handle.
cudaError_t on_stream(cudaStream_t handle, const std::function<cudaError_t(Lock&, Stream&)>& body) {
  return enter_runtime([&](Lock& lock, DeviceState& device) {
    Stream* stream = stream_of(handle, device);
    return stream == nullptr ? cudaErrorInvalidResourceHandle : body(lock, *stream);
  });
}

// Waiting for a capturing stream, or asking about it, is an error that invalidates the capture.
cudaError_t forbid_wait(Stream& stream) {
  if (&stream == &device_state(stream.device).legacy) return forbid_implicit_dependency(device_state(stream.device));
  if (stream.capture == nullptr) return forbid_during_capture();
  invalidate(*stream.capture);
  return cudaErrorStreamCaptureUnsupported;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return make_stream(stream, cudaStreamDefault, 0); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) { return make_stream(stream, flags, 0); }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return make_stream(stream, flags, priority);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* greatest) {
  if (lowest != nullptr) *lowest = 0;
  if (greatest != nullptr) *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  return on_stream(handle, [&](Lock&, Stream& stream) {
    *priority = stream.priority;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  return on_stream(handle, [&](Lock&, Stream& stream) {
    *flags = stream.blocking ? cudaStreamDefault : cudaStreamNonBlocking;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  return on_stream(handle, [&](Lock&, Stream& stream) {
    *id = stream.id;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return on_stream(handle, [&](Lock&, Stream& stream) {
    *device = stream.device;
    return cudaSuccess;
  });
}

// Returns at once; the work goes on.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return on_stream(handle, [&](Lock&, Stream& stream) {
    if (device_state(stream.device).streams.count(&stream) == 0 || handle == cudaStreamPerThread)
      return cudaErrorInvalidResourceHandle;
    if (stream.capture != nullptr) {
      invalidate(*stream.capture);
      stream.capture->streams.erase(&stream);
    }
    DeviceState& device = device_state(stream.device);
    device.streams.erase(&stream);
    if (stream.last != nullptr) device.orphans.push_back(stream.last);
    delete &stream;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return on_stream(handle, [](Lock& lock, Stream& stream) {
    const cudaError_t error = forbid_wait(stream);
    if (error != cudaSuccess) return error;
    const DeviceState& device = device_state(stream.device);
    await_all(lock, "cudaStreamSynchronize", ends_of(stream));
    return device.fault;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return on_stream(handle, [](Lock&, Stream& stream) {
    const cudaError_t error = forbid_wait(stream);
    if (error != cudaSuccess) return error;
    return are_done(ends_of(stream)) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return enter_runtime([](Lock& lock, DeviceState& device) {
    const cudaError_t error = forbid_device_wait(device);
    if (error != cudaSuccess) return error;
    await_all(lock, "cudaDeviceSynchronize", ends_of(device));
    return device.fault;
  });
}

}  // extern "C"
