// Kernels: their registration by nvcc's host code, loading on devices, and execution by the machine.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "tests/ptx/machine/machine.h"
#include "tests/ptx/runtime/state.h"

namespace tutti::cudart {

// A translation unit's device code.
struct Binary {
  std::string_view image;                                     // Contains the PTX.
  std::string name;                                           // For messages.
  std::string other;                                          // PTX of TUTTI_PTX_PROGRAMS that replaces the image.
  std::shared_ptr<const ptx::Program> program;                // Null until a kernel is loaded.
  std::map<int, std::shared_ptr<const ptx::Module>> modules;  // By device.
};

struct Kernel {
  Binary* binary = nullptr;
  std::string name;
  struct OnDevice {
    std::shared_ptr<const ptx::Module> module;  // Null until the kernel is loaded.
    const ptx::KernelInfo* info = nullptr;
    std::uint32_t dynamic_shared_bytes_max = 0;
  };
  std::map<int, OnDevice> loaded;  // By device.
};

// Called before main(), without the lock.
Binary* register_binary(const void* wrapper);
void register_kernel(Binary* binary, const void* stub, const char* name);
// Returns the kernel of a host stub, or null. Requires the lock.
Kernel* find_kernel(const void* stub);

struct LoadedKernel {
  cudaError_t error = cudaSuccess;
  Kernel::OnDevice* kernel = nullptr;  // Null after an error.
};
// Loads the kernel if it is not loaded. With lazy loading this waits for all running kernels of the device.
// Source: CUDA programming guide, "Lazy loading", "Concurrent execution".
LoadedKernel load(Lock& lock, Kernel& kernel, int device);

// Called before a kernel (null: one without local memory) is launched. Its first launch on the device waits for the
// work of all streams of the device, and orders nothing. The driver enlarges the context's local memory then if the
// kernel needs more per thread than all before it. How much it needs is not known here, since ptxas adds spills.
// Source: behaviour of an H200 with driver 580.159; CUDA driver API, CU_CTX_LMEM_RESIZE_TO_MAX: it does not shrink.
void reserve_local_memory(Lock& lock, DeviceState& device, const Kernel* kernel);

ptx::Machine& machine();  // The machine of the process. Requires the lock.

struct KernelRequest {
  Kernel* kernel = nullptr;
  dim3 grid, block;
  void** arguments = nullptr;
  std::size_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  dim3 cluster = {};
};

// Checks the request. Appends the kernel to the stream, or to its capture.
cudaError_t launch(Lock& lock, const KernelRequest& request, cudaStream_t stream, DeviceState& current);

}  // namespace tutti::cudart
