// Communicators whose buffers lie on a device: how they come there, and how their calls are enqueued.
#pragma once

#include <memory>
#include <vector>

#include "src/api/comm_handle.h"
#include "src/communicator/device/enqueue.h"

namespace tutti {

// The device that the options mean; null: host memory.
Result<std::shared_ptr<Device>> device_for(const CommunicatorOptions& options);

int ordinal_of(const std::shared_ptr<Device>& device);  // -1 for null.

// The same where communicators made with these options will be on it: they say so while they join.
Result<std::shared_ptr<Device>> device_to_join_on(CommunicatorOptions& options);

// Moves communicators, all of them this thread's, to where their buffers lie. Null: they stay.
Result<std::unique_ptr<Communicator>> place(std::unique_ptr<Communicator> communicator,
                                            const std::shared_ptr<Device>& device);
Result<std::vector<std::unique_ptr<Communicator>>> place_all(std::vector<std::unique_ptr<Communicator>> communicators,
                                                             const std::shared_ptr<Device>& device);
// Lets the calls of a communicator on a device come through here.
void note_device(SharedComm& shared);
int device_of(const CommHandle& handle);  // -1: host memory.

// Calls on a device that make up `call`: the call itself, or the messages of an all_to_all_v.
std::vector<DeviceCall> device_calls(const CommHandle& handle, const Call& call, tutti_stream stream);

}  // namespace tutti
