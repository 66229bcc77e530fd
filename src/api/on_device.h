// Communicators whose buffers lie on a device: their creation, and their calls.
#pragma once

#include <memory>
#include <vector>

#include "src/api/comm_handle.h"
#include "src/communicator/device/enqueue.h"

namespace tutti {

// Returns the device that the options select; null for host memory.
Result<std::shared_ptr<Device>> device_for(const CommunicatorOptions& options);

int ordinal_of(const std::shared_ptr<Device>& device);  // -1 for null.

// Like device_for(), and sets options.gpu, which ranks exchange while they join.
Result<std::shared_ptr<Device>> device_to_join_on(CommunicatorOptions& options);

// Collective: moves the buffers of ranks of this thread to the device. If `device` is null, they stay on the host.
Status move_to_device(const std::vector<Communicator*>& members, const std::shared_ptr<Device>& device);
// Sets shared.on_device. If it is not null, all later calls of the communicator take the slow path.
void note_device(SharedComm& shared);
int device_of(const CommHandle& handle);  // -1: host memory.

// Returns the calls on a device that implement `call`: the call itself, or the messages of an all_to_all_v.
std::vector<DeviceCall> device_calls(const CommHandle& handle, const Call& call, tutti_stream stream);

}  // namespace tutti
