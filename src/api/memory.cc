// Memory that local ranks can map.
#include "src/communicator/device/memory.h"

#include <string>

#include "src/api/errors.h"
#include "src/communicator/control/regions.h"
#include "src/communicator/peers/deferred_frees.h"

using tutti::DeviceMemory;
using tutti::guarded;
using tutti::invalid_argument;
using tutti::Regions;
using tutti::Status;

extern "C" {

tutti_status tutti_mem_alloc(void** memory, size_t size) {
  return guarded("tutti_mem_alloc", [&]() -> Status {
    if (memory == nullptr) return invalid_argument("memory is null: pass a pointer to a void*");
    if (size == 0) return invalid_argument("size is 0: pass 1 byte or more");
    *memory = TUTTI_TRY(Regions::of_process().allocate(size));
    return {};
  });
}

tutti_status tutti_mem_free(void* memory) {
  if (memory == nullptr) return tutti_ok;
  return guarded("tutti_mem_free", [&] {
    auto* begin = static_cast<std::byte*>(memory);
    return DeviceMemory::of_process().free(begin) ? Status() : Regions::of_process().free(begin);
  });
}

tutti_status tutti_mem_alloc_cuda(void** memory, size_t size) {
  return guarded("tutti_mem_alloc_cuda", [&]() -> Status {
    if (memory == nullptr) return invalid_argument("memory is null: pass a pointer to a void*");
    if (size == 0) return invalid_argument("size is 0: pass 1 byte or more");
    *memory = TUTTI_TRY(DeviceMemory::of_process().allocate(size));
    return {};
  });
}

tutti_status tutti_mem_trim_cuda(int device) {
  return guarded("tutti_mem_trim_cuda", [&]() -> Status {
    if (device < 0) return invalid_argument("device is " + std::to_string(device) + ": pass the number of a GPU");
    free_cached(TUTTI_TRY(tutti::find_device(device)));
    return {};
  });
}

tutti_status tutti_mem_register(void* memory, size_t size) {
  return guarded("tutti_mem_register", [&]() -> Status {
    if (memory == nullptr || size == 0) return invalid_argument("memory is null, or size is 0: pass whole pages");
    return Regions::of_process().register_memory(static_cast<std::byte*>(memory), size);
  });
}

tutti_status tutti_mem_deregister(void* memory) {
  return guarded("tutti_mem_deregister",
                 [&] { return Regions::of_process().deregister_memory(static_cast<std::byte*>(memory)); });
}

}  // extern "C"
