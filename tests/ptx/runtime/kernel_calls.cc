// Functions that launch and describe kernels, and those that nvcc's host code calls.
#include "tests/ptx/runtime/kernel.h"
#include "tests/ptx/runtime/memory.h"
#include "tests/ptx/runtime/node.h"

namespace {

using namespace tutti::cudart;

// Runs `body` with a kernel, loaded on the current device.
cudaError_t on_kernel(const void* stub, const std::function<cudaError_t(Kernel::OnDevice&, DeviceState&)>& body) {
  return enter_runtime([&](Lock& lock, DeviceState& device) {
    Kernel* kernel = find_kernel(stub);
    if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
    const auto [error, loaded] = load(lock, *kernel, device.ordinal);
    return error == cudaSuccess ? body(*loaded, device) : error;
  });
}

cudaError_t launch_kernel(Kernel* (*find)(const void*), const void* named, KernelRequest request, cudaStream_t stream) {
  return enter_runtime([&](Lock& lock, DeviceState& device) {
    request.kernel = find(named);
    return launch(lock, request, stream, device);
  });
}

Kernel* of_handle(const void* handle) { return static_cast<Kernel*>(const_cast<void*>(handle)); }

constexpr int kSharedBytesOptin = 232448;

// Applies an attribute to a request. Source: CUDA runtime API, cudaLaunchAttributeID. Attributes of later devices are
// errors here, so that a launch does not rely on them.
cudaError_t apply(const cudaLaunchAttribute& attribute, KernelRequest& request) {
  const cudaLaunchAttributeValue& value = attribute.val;
  const bool is_hopper = node_options().capability >= 90;
  switch (attribute.id) {
    case cudaLaunchAttributeIgnore:
    case cudaLaunchAttributePriority: return cudaSuccess;
    case cudaLaunchAttributeCooperative: request.cooperative = value.cooperative != 0; return cudaSuccess;
    case cudaLaunchAttributeMemSyncDomain: {
      const bool known =
          value.memSyncDomain == cudaLaunchMemSyncDomainDefault || value.memSyncDomain == cudaLaunchMemSyncDomainRemote;
      return known && is_hopper ? cudaSuccess : cudaErrorInvalidValue;
    }
    case cudaLaunchAttributeClusterDimension:
      request.cluster = dim3(value.clusterDim.x, value.clusterDim.y, value.clusterDim.z);
      return is_hopper ? cudaSuccess : cudaErrorInvalidClusterSize;
    case cudaLaunchAttributeClusterSchedulingPolicyPreference: {
      const auto policy = value.clusterSchedulingPolicyPreference;
      const bool known =
          policy >= cudaClusterSchedulingPolicyDefault && policy <= cudaClusterSchedulingPolicyLoadBalancing;
      return known && is_hopper ? cudaSuccess : cudaErrorInvalidValue;
    }
    default: return not_supported(("launch attribute " + std::to_string(attribute.id)).c_str());
  }
}

cudaError_t request_of(const cudaLaunchConfig_t* config, void** arguments, KernelRequest& request) {
  if (config == nullptr) return cudaErrorInvalidValue;
  request = {nullptr, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, false};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaError_t error = apply(config->attrs[i], request);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                             cudaStream_t stream) {
  return launch_kernel(find_kernel, stub, {nullptr, grid, block, arguments, shared_bytes, false}, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* stub, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                                        cudaStream_t stream) {
  return launch_kernel(find_kernel, stub, {nullptr, grid, block, arguments, shared_bytes, true}, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub, void** arguments) {
  KernelRequest request;
  const cudaError_t error = request_of(config, arguments, request);
  return error == cudaSuccess ? launch_kernel(find_kernel, stub, request, config->stream) : keep(error);
}

// Source: CUDA runtime API. A multiprocessor holds no part of a cluster only.
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* stub, const cudaLaunchConfig_t* config) {
  KernelRequest request;
  const cudaError_t error = request_of(config, nullptr, request);
  if (error != cudaSuccess) return keep(error);
  return on_kernel(stub, [&](Kernel::OnDevice& kernel, DeviceState&) {
    const unsigned of_cluster = request.cluster.x * request.cluster.y * request.cluster.z;
    if (clusters == nullptr || of_cluster == 0) return cudaErrorInvalidValue;
    const std::uint32_t threads = request.block.x * request.block.y * request.block.z;
    const std::uint32_t fit = machine().blocks_per_multiprocessor(
        *kernel.module, *kernel.info, threads, static_cast<std::uint32_t>(request.dynamic_shared_bytes));
    *clusters = static_cast<int>(fit * static_cast<std::uint32_t>(node_options().multiprocessors) / of_cluster);
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* stub) {
  return on_kernel(stub, [&](Kernel::OnDevice& kernel, DeviceState&) {
    if (attributes == nullptr) return cudaErrorInvalidValue;
    *attributes = {};
    attributes->sharedSizeBytes = kernel.info->shared_bytes;
    attributes->localSizeBytes = kernel.info->local_bytes;
    attributes->maxThreadsPerBlock = static_cast<int>(kernel.info->threads_per_block_max);
    attributes->numRegs = static_cast<int>(kernel.info->registers);
    attributes->ptxVersion = attributes->binaryVersion = 90;
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(kernel.dynamic_shared_bytes_max);
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void* stub, cudaFuncAttribute attribute, int value) {
  return on_kernel(stub, [&](Kernel::OnDevice& kernel, DeviceState&) {
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return not_supported("cudaFuncSetAttribute");
    if (value < 0 || value > kSharedBytesOptin - static_cast<int>(kernel.info->shared_bytes))
      return cudaErrorInvalidValue;
    kernel.dynamic_shared_bytes_max = static_cast<std::uint32_t>(value);
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* stub, int threads,
                                                          size_t shared_bytes) {
  return on_kernel(stub, [&](Kernel::OnDevice& kernel, DeviceState&) {
    if (blocks == nullptr || threads < 1) return cudaErrorInvalidValue;
    *blocks = static_cast<int>(machine().blocks_per_multiprocessor(
        *kernel.module, *kernel.info, static_cast<std::uint32_t>(threads), static_cast<std::uint32_t>(shared_bytes)));
    return cudaSuccess;
  });
}

// ---- Host code of nvcc ----

void** __cudaRegisterFatBinary(void* wrapper) { return reinterpret_cast<void**>(register_binary(wrapper)); }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}  // At exit; kernels may still run.
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** binary, const char* stub, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  register_kernel(reinterpret_cast<Binary*>(binary), stub, name);
}

// The host cannot access variables: cudaMemcpyToSymbol() and its relatives do not exist.
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
void __cudaRegisterManagedVar(void**, void**, char*, const char* name, int, size_t, int, int) { not_supported(name); }

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream) {
  this_thread().configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  std::vector<CallConfiguration>& pushed = this_thread().configurations;
  if (pushed.empty()) return keep(cudaErrorUnknown);
  const CallConfiguration last = pushed.back();
  pushed.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* made, const void* stub) {
  return without_context([&](Lock&) {
    *made = reinterpret_cast<cudaKernel_t>(find_kernel(stub));
    return *made == nullptr ? cudaErrorInvalidDeviceFunction : cudaSuccess;
  });
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                               cudaStream_t stream) {
  return launch_kernel(of_handle, kernel, {nullptr, grid, block, arguments, shared_bytes, false}, stream);
}

}  // extern "C"
