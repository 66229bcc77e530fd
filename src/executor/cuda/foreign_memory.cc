#include "src/executor/cuda/foreign_memory.h"

#include <algorithm>
#include <cstring>

namespace tutti {

cudaError_t ForeignMemory::open(const DeviceHandle& handle, std::byte*& memory) {
  const std::lock_guard lock(mutex_);
  const auto known = opened_.find(handle);
  if (known != opened_.end()) {
    ++known->second.users;
    memory = known->second.memory;
    return cudaSuccess;
  }
  cudaIpcMemHandle_t named;
  static_assert(sizeof named == sizeof handle);
  std::memcpy(&named, handle.data(), sizeof named);
  void* opened = nullptr;
  const cudaError_t error = cudaIpcOpenMemHandle(&opened, named, cudaIpcMemLazyEnablePeerAccess);
  if (error != cudaSuccess) return error;
  memory = static_cast<std::byte*>(opened);
  opened_[handle] = {memory, 1};
  return cudaSuccess;
}

void ForeignMemory::close(std::byte* memory) {
  const std::lock_guard lock(mutex_);
  const auto known =
      std::find_if(opened_.begin(), opened_.end(), [&](const auto& entry) { return entry.second.memory == memory; });
  if (known == opened_.end() || --known->second.users > 0) return;
  if (cudaIpcCloseMemHandle(memory) != cudaSuccess) cudaGetLastError();
  opened_.erase(known);
}

}  // namespace tutti
