// Streams: resolution of handles, and the order of operations.
#pragma once

#include "tests/ptx/runtime/graph.h"

namespace tutti::cudart {

// Returns the stream of a handle; for default streams, that of the current device. Null for an unknown handle.
Stream* stream_of(cudaStream_t handle, DeviceState& current);

struct Operation {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  MakeWork make;                               // Null: the operation only marks a point of the stream.
  const Kernel* needs_local_memory = nullptr;  // Null: not a kernel with local memory.
};

// Appends an operation to the stream, or to the graph that captures the stream. Stores the task of a stream that is not
// capturing in `task`.
cudaError_t enqueue(Stream& stream, Operation operation, TaskPtr* task = nullptr);
// Appends an operation that also waits for other tasks. The stream must not be capturing.
TaskPtr append(Stream& stream, std::unique_ptr<Work> work, std::vector<TaskPtr> before);

// The tasks that a wait for the stream waits for. For the legacy stream, these include the ends of blocking streams.
std::vector<TaskPtr> ends_of(Stream& stream);
std::vector<TaskPtr> ends_of(DeviceState& device);
// The last task of each stream of the device, also of destroyed ones. Each may be null.
std::vector<TaskPtr> last_tasks(const DeviceState& device);
// Returns whether the tasks (each may be null) have ended. The host does not know it.
bool have_ended(const std::vector<TaskPtr>& tasks);
// The host knows the tasks' ends afterwards.
void await_all(Lock& lock, const char* what, const std::vector<TaskPtr>& tasks);
// Like have_ended(), but if the tasks have ended, the host knows it.
bool are_done(const std::vector<TaskPtr>& tasks);

}  // namespace tutti::cudart
