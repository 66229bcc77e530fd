#include "src/executor/cuda/host_pages.h"

namespace tutti {

HostPages& HostPages::of_process() {
  static auto& pages = *new HostPages;  // Threads may outlive statics.
  return pages;
}

cudaError_t HostPages::show(std::byte* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = shown_.find(memory);
  if (found != shown_.end()) {
    ++found->second.users;
    return cudaSuccess;
  }
  const cudaError_t error = cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
  if (error == cudaErrorHostMemoryAlreadyRegistered) {
    cudaGetLastError();
  } else if (error != cudaSuccess) {
    return error;
  }
  shown_[memory] = {1, error == cudaSuccess};
  return cudaSuccess;
}

void HostPages::hide(std::byte* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = shown_.find(memory);
  if (found == shown_.end() || --found->second.users > 0) return;
  if (found->second.ours && cudaHostUnregister(memory) != cudaSuccess) cudaGetLastError();
  shown_.erase(found);
}

}  // namespace tutti
