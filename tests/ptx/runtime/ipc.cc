// Device memory of other processes, by IPC handles. A handle names the owner's file of device memory, which /proc makes
// accessible to processes of the same user.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tests/ptx/runtime/memory.h"

namespace {

using namespace tutti::cudart;

constexpr std::size_t kPage = 4096;

struct IpcName {
  pid_t process;
  int file;
  int device;
  off_t offset;
  std::size_t bytes;
};
static_assert(sizeof(IpcName) <= sizeof(cudaIpcMemHandle_t));

cudaError_t map(const IpcName& name, Allocation& made) {
  const std::string path = "/proc/" + std::to_string(name.process) + "/fd/" + std::to_string(name.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return cudaErrorMapBufferObjectFailed;
  const std::size_t skipped = static_cast<std::size_t>(name.offset) % kPage;
  made.page_bytes = skipped + name.bytes;
  void* pages = ::mmap(nullptr, made.page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                       name.offset - static_cast<off_t>(skipped));
  ::close(file);
  if (pages == MAP_FAILED) return cudaErrorMapBufferObjectFailed;
  made.pages = static_cast<std::byte*>(pages);
  made.begin = made.pages + skipped;
  made.bytes = name.bytes;
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  return enter_runtime([&](Lock&, DeviceState&) {
    Allocation* allocation = find_allocation(memory);
    if (handle == nullptr || allocation == nullptr || allocation->origin != Origin::device)
      return cudaErrorInvalidValue;
    const FilePart part = file_part(*allocation);
    const IpcName name = {::getpid(), part.file, allocation->device, part.offset, allocation->bytes};
    *handle = {};
    std::memcpy(handle, &name, sizeof name);
    // Other processes may write the memory from now on.
    address_space().mark_written(allocation->begin, allocation->bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaIpcOpenMemHandle(void** made, cudaIpcMemHandle_t handle, unsigned flags) {
  return enter_runtime([&](Lock& lock, DeviceState& device) {
    if (made == nullptr || flags != cudaIpcMemLazyEnablePeerAccess) return cudaErrorInvalidValue;
    IpcName name;
    std::memcpy(&name, &handle, sizeof name);
    if (name.process == ::getpid()) return cudaErrorDeviceUninitialized;  // A process cannot open its own memory.
    if (!is_device(name.device)) return cudaErrorInvalidValue;
    if (name.device != device.ordinal && !linked(device.ordinal, name.device)) return cudaErrorPeerAccessUnsupported;
    const std::string source(reinterpret_cast<const char*>(&handle), sizeof handle);
    Allocation* known = find_opened(source);
    if (known != nullptr) {
      ++known->opened;
      known->devices |= std::uint64_t{1} << device.ordinal;
      (void)address_space().set_devices(known->begin, known->devices);
      *made = known->begin;
      return cudaSuccess;
    }
    await_before_mapping(lock, "cudaIpcOpenMemHandle", device);
    Allocation allocation = {.origin = Origin::opened, .device = name.device};
    allocation.devices = std::uint64_t{1} << device.ordinal;
    allocation.opened = 1;
    allocation.handle = source;
    const cudaError_t error = map(name, allocation);
    if (error != cudaSuccess) return error;
    if (!publish(allocation)) return cudaErrorUnknown;
    *made = allocation.begin;
    return cudaSuccess;
  });
}

cudaError_t cudaIpcCloseMemHandle(void* memory) {
  return enter_runtime([&](Lock&, DeviceState&) {
    Allocation* allocation = find_allocation(memory);
    if (allocation == nullptr || allocation->origin != Origin::opened || allocation->begin != memory)
      return cudaErrorInvalidValue;
    if (--allocation->opened > 0) return cudaSuccess;
    const Allocation closed = *allocation;
    withdraw(allocation);
    ::munmap(closed.pages, closed.page_bytes);
    return cudaSuccess;
  });
}

}  // extern "C"
