#include "src/executor/cuda/host_pages.h"

#include <cuda_runtime.h>

#include <string>

#include "src/executor/cuda/calls.h"

namespace tutti {
HostPages& HostPages::of_process() {
  static auto& pages = *new HostPages;  // Never destroyed, because threads may outlive static objects.
  return pages;
}

Status HostPages::register_pages(std::byte* memory, std::size_t bytes) {
  const std::string range = std::to_string(bytes) + " bytes of host memory";
  const std::lock_guard lock(mutex_);
  const auto found = registered_.find(memory);
  if (found != registered_.end()) {
    if (found->second.bytes != bytes) {
      return internal_error(range + " begin where a mapping of " + std::to_string(found->second.bytes) +
                            " bytes is still in use");
    }
    ++found->second.users;
    return {};
  }
  const cudaError_t error = cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
  if (error == cudaErrorHostMemoryAlreadyRegistered) {
    cudaGetLastError();
    if (!is_memory(cudaMemoryTypeHost, memory) || !is_memory(cudaMemoryTypeHost, memory + bytes - 1))
      return invalid_usage("only a part of " + range +
                           " is registered with CUDA; call cudaHostRegister for all of it, or for no part");
  } else {
    TUTTI_CHECK_OK(cuda_status(error, ("cudaHostRegister of " + range).c_str(), "this process"));
  }
  registered_[memory] = {1, bytes, error == cudaSuccess};
  return {};
}

void HostPages::unregister_pages(std::byte* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = registered_.find(memory);
  if (found == registered_.end() || --found->second.users > 0) return;
  if (found->second.ours && cudaHostUnregister(memory) != cudaSuccess) cudaGetLastError();
  registered_.erase(found);
}

}  // namespace tutti
