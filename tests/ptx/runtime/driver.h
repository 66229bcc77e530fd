// Functions of the driver, which cudaGetDriverEntryPoint() returns.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace tutti::cudart {

CUresult stream_write_value(CUstream stream, CUdeviceptr address, std::uint32_t value, unsigned flags);
CUresult stream_wait_value(CUstream stream, CUdeviceptr address, std::uint32_t value, unsigned flags);

// Virtual memory management: memory in files, which other processes import.
CUresult allocation_granularity(std::size_t* bytes, const CUmemAllocationProp* properties,
                                CUmemAllocationGranularity_flags option);
CUresult create_memory(CUmemGenericAllocationHandle* made, std::size_t bytes, const CUmemAllocationProp* properties,
                       unsigned long long flags);
CUresult release_memory(CUmemGenericAllocationHandle memory);
CUresult reserve_addresses(CUdeviceptr* made, std::size_t bytes, std::size_t alignment, CUdeviceptr wanted,
                           unsigned long long flags);
CUresult free_addresses(CUdeviceptr address, std::size_t bytes);
CUresult map_memory(CUdeviceptr address, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle memory,
                    unsigned long long flags);
CUresult unmap_memory(CUdeviceptr address, std::size_t bytes);
CUresult set_access(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* entries, std::size_t count);
CUresult export_memory(void* made, CUmemGenericAllocationHandle memory, CUmemAllocationHandleType type,
                       unsigned long long flags);
CUresult import_memory(CUmemGenericAllocationHandle* made, void* file, CUmemAllocationHandleType type);
CUresult address_range(CUdeviceptr* begin, std::size_t* bytes, CUdeviceptr address);
CUresult handle_for_range(void* made, CUdeviceptr address, std::size_t bytes, CUmemRangeHandleType type,
                          unsigned long long flags);

// Multicast objects.
CUresult create_multicast(CUmemGenericAllocationHandle* made, const CUmulticastObjectProp* properties);
CUresult add_to_multicast(CUmemGenericAllocationHandle object, CUdevice device);
CUresult bind_memory(CUmemGenericAllocationHandle object, std::size_t object_offset,
                     CUmemGenericAllocationHandle memory, std::size_t offset, std::size_t bytes,
                     unsigned long long flags);
CUresult unbind_memory(CUmemGenericAllocationHandle object, CUdevice device, std::size_t offset, std::size_t bytes);
CUresult multicast_granularity(std::size_t* bytes, const CUmulticastObjectProp* properties,
                               CUmulticastGranularity_flags option);

// Attributes of a device; the numbers are those of cudaDeviceGetAttribute().
CUresult device_attribute(int* value, CUdevice_attribute attribute, CUdevice device);

}  // namespace tutti::cudart
