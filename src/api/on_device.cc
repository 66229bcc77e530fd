#include "src/api/on_device.h"

#include "src/communicator/call/all_to_all_v.h"

namespace tutti {

Result<std::shared_ptr<Device>> device_for(const CommunicatorOptions& options) {
  if (options.memory == Memory::host) return std::shared_ptr<Device>();
  return find_device(options.device);
}

int ordinal_of(const std::shared_ptr<Device>& device) {
  return device == nullptr ? -1 : static_cast<int>(device->traits().ordinal);
}

Result<std::shared_ptr<Device>> device_to_join_on(CommunicatorOptions& options) {
  std::shared_ptr<Device> device = TUTTI_TRY(device_for(options));
  if (device != nullptr) options.gpu = device->traits().bus_id;
  return device;
}

Status move_to_device(const std::vector<Communicator*>& members, const std::shared_ptr<Device>& device) {
  return device == nullptr ? Status() : DeviceBackend::attach(members, device);
}

void note_device(SharedComm& shared) {
  shared.on_device = shared.communicator->on_device();
  if (shared.on_device != nullptr) shared.queued = 1;
}

int device_of(const CommHandle& handle) {
  const DeviceBackend* backend = handle.shared->on_device;
  return backend == nullptr ? -1 : static_cast<int>(backend->device().traits().ordinal);
}

std::vector<DeviceCall> device_calls(const CommHandle& handle, const Call& call, tutti_stream stream) {
  DeviceCall whole;
  whole.communicator = handle.shared->communicator.get();
  whole.call = call;
  whole.options = options_of(handle);
  whole.stream = stream;
  if (call.kind != Kind::all_to_all_v) return {whole};
  std::vector<DeviceCall> messages;
  for (const Call& message : messages_of(call, handle.rank)) {
    whole.call = message;
    messages.push_back(whole);
  }
  return messages;
}

}  // namespace tutti
