#include "src/executor/cuda/calls.h"

namespace tutti {

Status cuda_status(cudaError_t error, const char* call, const std::string& device) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();
  std::string text = std::string(call) + " on " + device + ": " + cudaGetErrorString(error) + " (" +
                     cudaGetErrorName(error) + ", " + std::to_string(static_cast<int>(error)) + ")";
  return Status(Code::system, std::move(text));
}

bool is_memory(cudaMemoryType type, const std::byte* memory) {
  cudaPointerAttributes attributes = {};
  const cudaError_t error = cudaPointerGetAttributes(&attributes, memory);
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess && attributes.type == type;
}

}  // namespace tutti
