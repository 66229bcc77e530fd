// Functions that describe and select devices, and peer access.
#include <cstdio>
#include <cstring>

#include "tests/ptx/runtime/driver.h"
#include "tests/ptx/runtime/memory.h"

namespace {

using namespace tutti::cudart;

constexpr int kSharedBytesOptin = 232448;

// The bus number in the PCI address, which differs among devices.
int bus_of(int device) { return 0x10 + device; }

cudaUUID_t uuid_of(int device) {
  cudaUUID_t uuid = {};
  std::memcpy(uuid.bytes, "tutti-ptx-dev", 13);
  uuid.bytes[15] = static_cast<char>(device);
  return uuid;
}

// Attributes are those of an H100; attributes that are not listed are 0.
int attribute_of(int attribute) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return 1024;
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: return 1024;
    case cudaDevAttrMaxBlockDimZ: return 64;
    case cudaDevAttrMaxGridDimX: return 0x7fffffff;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock: return 49152;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return kSharedBytesOptin;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return kSharedBytesOptin + 1024;
    case cudaDevAttrReservedSharedMemoryPerBlock: return 1024;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: return 65536;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return 2048;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return 32;
    case cudaDevAttrWarpSize: return 32;
    case cudaDevAttrMultiProcessorCount: return node_options().multiprocessors;
    case cudaDevAttrComputeCapabilityMajor: return node_options().capability / 10;
    case cudaDevAttrClusterLaunch: return node_options().capability >= 90 ? 1 : 0;
    case cudaDevAttrMemSyncDomainCount: return node_options().capability >= 90 ? 4 : 1;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrHostRegisterSupported: return 1;
    case cudaDevAttrAsyncEngineCount: return 3;
    case cudaDevAttrPageableMemoryAccess: return node_options().pageable ? 1 : 0;
    case cudaDevAttrMpsEnabled: return node_options().mps ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: return 1;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED: return node_options().fabric == Fabric::none ? 0 : 1;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
      return node_options().files == FileExport::unsupported ? 0 : 1;
    default: return 0;
  }
}

// CUDA knows these attributes; other numbers are errors.
bool is_attribute(int attribute) { return attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX; }

void describe(cudaDeviceProp& properties, int device) {
  properties = {};
  std::snprintf(properties.name, sizeof properties.name, "Tutti PTX machine");
  properties.uuid = uuid_of(device);
  properties.totalGlobalMem = total_bytes();
  properties.sharedMemPerBlock = 49152;
  properties.sharedMemPerBlockOptin = kSharedBytesOptin;
  properties.sharedMemPerMultiprocessor = kSharedBytesOptin + 1024;
  properties.reservedSharedMemPerBlock = 1024;
  properties.regsPerBlock = properties.regsPerMultiprocessor = 65536;
  properties.warpSize = 32;
  properties.maxThreadsPerBlock = 1024;
  properties.maxThreadsDim[0] = properties.maxThreadsDim[1] = 1024;
  properties.maxThreadsDim[2] = 64;
  properties.maxGridSize[0] = 0x7fffffff;
  properties.maxGridSize[1] = properties.maxGridSize[2] = 65535;
  properties.maxThreadsPerMultiProcessor = 2048;
  properties.maxBlocksPerMultiProcessor = 32;
  properties.major = node_options().capability / 10;
  properties.multiProcessorCount = node_options().multiprocessors;
  properties.concurrentKernels = properties.canMapHostMemory = properties.unifiedAddressing = 1;
  properties.cooperativeLaunch = properties.streamPrioritiesSupported = properties.managedMemory = 1;
  properties.hostRegisterSupported = properties.canUseHostPointerForRegisteredMem = 1;
  properties.asyncEngineCount = 3;
  properties.pageableMemoryAccess = node_options().pageable ? 1 : 0;
  properties.pciBusID = bus_of(device);
  properties.mpsEnabled = node_options().mps ? 1 : 0;
}

}  // namespace

CUresult tutti::cudart::device_attribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (value == nullptr || !is_attribute(attribute)) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = attribute == CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED ? supports_multicast(device) : attribute_of(attribute);
  return CUDA_SUCCESS;
}

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return without_context([&](Lock&) {
    if (count == nullptr) return cudaErrorInvalidValue;
    *count = device_count();
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return without_context([&](Lock&) {
    if (device == nullptr) return cudaErrorInvalidValue;
    *device = current_ordinal();
    return cudaSuccess;
  });
}

// Creates the primary context, as since CUDA 12, and makes it current in place of the thread's current context.
cudaError_t cudaSetDevice(int device) {
  return without_context([&](Lock&) {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    ThreadState& thread = this_thread();
    thread.device = device;
    if (!thread.contexts.empty()) thread.contexts.pop_back();
    thread.contexts.push_back(nullptr);
    current_device_state();
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return without_context([&](Lock&) {
    if (properties == nullptr) return cudaErrorInvalidValue;
    if (!is_device(device)) return cudaErrorInvalidDevice;
    describe(*properties, device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return keep(static_cast<cudaError_t>(device_attribute(value, static_cast<CUdevice_attribute>(attribute), device)));
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  return without_context([&](Lock&) {
    if (id == nullptr || bytes < 13) return cudaErrorInvalidValue;
    if (!is_device(device)) return cudaErrorInvalidDevice;
    std::snprintf(id, static_cast<std::size_t>(bytes), "0000:%02X:00.0", static_cast<unsigned>(bus_of(device)));
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return without_context([&](Lock&) {
    if (can == nullptr) return cudaErrorInvalidValue;
    if (!is_device(device) || !is_device(peer)) return cudaErrorInvalidDevice;
    *can = linked(device, peer) ? 1 : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return enter_runtime([&](Lock& lock, DeviceState& device) {
    if (flags != 0) return cudaErrorInvalidValue;
    if (!is_device(peer)) return cudaErrorInvalidDevice;
    if (!linked(device.ordinal, peer))
      return peer == device.ordinal ? cudaErrorInvalidDevice : cudaErrorPeerAccessUnsupported;
    if (device.reaches.count(peer) != 0) return cudaErrorPeerAccessAlreadyEnabled;
    await_before_mapping(lock, "cudaDeviceEnablePeerAccess", device);
    device_state(peer).active = true;
    device.reaches.insert(peer);
    update_peer_access(peer);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return enter_runtime([&](Lock&, DeviceState& device) {
    if (!is_device(peer)) return cudaErrorInvalidDevice;
    if (device.reaches.erase(peer) == 0) return cudaErrorPeerAccessNotEnabled;
    update_peer_access(peer);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceReset() { return not_supported("cudaDeviceReset"); }

cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return keep(cudaErrorInvalidValue);
  *version = node_options().driver;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return keep(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return last_error(true); }
cudaError_t cudaPeekAtLastError() { return last_error(false); }

const char* cudaGetErrorName(cudaError_t error) {
  return runtime_name(error) == nullptr ? "unrecognized error code" : runtime_name(error);
}
const char* cudaGetErrorString(cudaError_t error) {
  return error_text(error) == nullptr ? "unrecognized error code" : error_text(error);
}

}  // extern "C"
