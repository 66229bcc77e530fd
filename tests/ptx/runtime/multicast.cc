// Multicast objects of the driver. The file of an object has a table of the devices and files that ranks have bound,
// also those of other processes. NVIDIA's driver API documents the rules: all devices are added before memory is bound.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ptx/runtime/driver.h"
#include "tests/ptx/runtime/virtual_space.h"

namespace tutti::cudart {

// Shared by processes. A device has a bit in `added`, and the number of its file in `bound`, or 0.
struct MulticastTable {
  std::uint64_t bytes = 0;
  std::uint32_t devices = 0;
  std::atomic<std::uint32_t> added{0};
  std::array<std::atomic<std::uint64_t>, 16> bound{};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

namespace {

constexpr const char* kFileName = "tutti-ptx-multicast";

// Mapped files of this process, by number. The machine's thread reads it.
struct Mappings {
  std::mutex mutex;
  std::multimap<std::uint64_t, std::byte*> begins;
};
Mappings& mappings() {
  static auto& instance = *new Mappings;
  return instance;
}

std::uint64_t number_of(int file) {
  struct stat status = {};
  return ::fstat(file, &status) == 0 ? static_cast<std::uint64_t>(status.st_ino) : 0;
}

PhysicalPtr as_object(int file, std::size_t bytes) {
  void* pages = ::mmap(nullptr, sizeof(MulticastTable), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (pages == MAP_FAILED) return nullptr;
  auto object = std::make_shared<PhysicalMemory>();
  object->file = file;
  object->device = -1;
  object->table = static_cast<MulticastTable*>(pages);
  object->bytes = bytes != 0 ? bytes : object->table->bytes;
  return object;
}

PhysicalPtr find_object(CUmemGenericAllocationHandle handle) {
  PhysicalPtr object = find_memory(handle);
  return object == nullptr || object->table == nullptr ? nullptr : object;
}

// Where this process has mapped the bound memory; empty unless it has mapped that of all devices.
std::vector<std::byte*> replicas_of(const MulticastTable& table) {
  Mappings& all = mappings();
  const std::lock_guard lock(all.mutex);
  std::vector<std::byte*> begins;
  for (const auto& number : table.bound) {
    const auto found = all.begins.find(number);
    if (number != 0 && found != all.begins.end()) begins.push_back(found->second);
  }
  if (begins.size() != table.devices) begins.clear();
  return begins;
}

// Called once per binding of the last device.
bool last_device_fails() {
  static std::atomic<std::uint32_t> bindings = 0;
  const MulticastSupport support = node_options().multicast;
  return support == MulticastSupport::last_fails || (bindings++ > 0 && support == MulticastSupport::last_binds_once);
}

}  // namespace

PhysicalMemory::~PhysicalMemory() {
  if (table != nullptr) ::munmap(table, sizeof *table);
  if (file >= 0) ::close(file);
  if (charged) refund(device, bytes);
}

void note_mapping(int file, std::byte* begin) {
  const std::lock_guard lock(mappings().mutex);
  mappings().begins.emplace(number_of(file), begin);
}

void forget_mapping(int file, const std::byte* begin) {
  const std::lock_guard lock(mappings().mutex);
  auto [first, last] = mappings().begins.equal_range(number_of(file));
  while (first != last && first->second != begin) ++first;
  if (first != last) mappings().begins.erase(first);
}

PhysicalPtr import_multicast(int file) {
  std::array<char, 64> name{};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  if (::readlink(link.c_str(), name.data(), name.size() - 1) < 0) return nullptr;
  if (std::string_view(name.data()).find(kFileName) == std::string_view::npos) return nullptr;
  return as_object(::fcntl(file, F_DUPFD_CLOEXEC, 0), 0);
}

cudaError_t grant_multicast(VirtualSpace::View& view, CUdeviceptr address, const CUmemAccessDesc& entry) {
  const int device = entry.location.id;
  const MulticastTable& table = *view.memory->table;
  if (entry.location.type != CU_MEM_LOCATION_TYPE_DEVICE || !is_device(device)) return cudaErrorInvalidDevice;
  if ((table.added >> device & 1) == 0) return cudaErrorInvalidDevice;
  auto* begin = reinterpret_cast<std::byte*>(address);
  const bool known = view.devices != 0;
  view.devices |= std::uint64_t{1} << device;
  if (known) return address_space().set_devices(begin, view.devices).ok() ? cudaSuccess : cudaErrorUnknown;
  // The machine remembers ranges that were removed, which must not keep the object.
  const auto replicas = [weak = std::weak_ptr(view.memory)] {
    const PhysicalPtr object = weak.lock();
    return object == nullptr ? std::vector<std::byte*>() : replicas_of(*object->table);
  };
  const ptx::MemoryRange range = {.begin = begin,
                                  .bytes = view.bytes,
                                  .kind = ptx::MemoryKind::foreign,
                                  .devices = view.devices,
                                  .name = "cuMemMap of a multicast object",
                                  .replicas = replicas};
  return address_space().add(range).ok() ? cudaSuccess : cudaErrorUnknown;
}

CUresult create_multicast(CUmemGenericAllocationHandle* made, const CUmulticastObjectProp* wanted) {
  return driver_without_context([&](Lock&) {
    if (made == nullptr || wanted == nullptr || wanted->size == 0 || wanted->size % kGranularity != 0)
      return cudaErrorInvalidValue;
    if (wanted->numDevices == 0 || wanted->numDevices > static_cast<unsigned>(device_count()))
      return cudaErrorInvalidValue;
    if (node_options().multicast == MulticastSupport::none) return cudaErrorNotSupported;
    if (!offers_handles(static_cast<unsigned>(wanted->handleTypes))) return cudaErrorNotSupported;
    const int file = ::memfd_create(kFileName, MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, sizeof(MulticastTable)) != 0) return cudaErrorMemoryAllocation;
    PhysicalPtr object = as_object(file, wanted->size);
    if (object == nullptr) return cudaErrorMemoryAllocation;
    object->table->bytes = wanted->size;
    object->table->devices = wanted->numDevices;
    object->exports = static_cast<unsigned>(wanted->handleTypes);
    *made = add(std::move(object));
    return cudaSuccess;
  });
}

CUresult add_to_multicast(CUmemGenericAllocationHandle handle, CUdevice device) {
  return driver_without_context([&](Lock&) {
    const PhysicalPtr object = find_object(handle);
    if (object == nullptr || !is_device(device)) return cudaErrorInvalidValue;
    if (!supports_multicast(device)) return cudaErrorNotSupported;
    const std::uint32_t bit = 1U << device;
    return (object->table->added.fetch_or(bit) & bit) != 0 ? cudaErrorInvalidDevice : cudaSuccess;
  });
}

CUresult bind_memory(CUmemGenericAllocationHandle handle, std::size_t object_offset,
                     CUmemGenericAllocationHandle memory_handle, std::size_t offset, std::size_t bytes,
                     unsigned long long flags) {
  return driver_without_context([&](Lock&) {
    const PhysicalPtr object = find_object(handle), memory = find_memory(memory_handle);
    if (object == nullptr || memory == nullptr || memory->table != nullptr || flags != 0) return cudaErrorInvalidValue;
    if (object_offset != 0 || offset != 0 || bytes != object->bytes || bytes > memory->bytes)
      return cudaErrorInvalidValue;
    MulticastTable& table = *object->table;
    if (static_cast<unsigned>(__builtin_popcount(table.added)) != table.devices) return cudaErrorNotReady;
    if ((table.added >> memory->device & 1) == 0) return cudaErrorInvalidDevice;
    if (memory->device + 1 == device_count() && last_device_fails()) return cudaErrorMemoryAllocation;
    std::uint64_t none = 0;
    return table.bound[static_cast<std::size_t>(memory->device)].compare_exchange_strong(none, number_of(memory->file))
               ? cudaSuccess
               : cudaErrorAlreadyMapped;
  });
}

CUresult unbind_memory(CUmemGenericAllocationHandle handle, CUdevice device, std::size_t offset, std::size_t bytes) {
  return driver_without_context([&](Lock&) {
    const PhysicalPtr object = find_object(handle);
    if (object == nullptr || !is_device(device) || offset != 0 || bytes != object->bytes) return cudaErrorInvalidValue;
    return object->table->bound[static_cast<std::size_t>(device)].exchange(0) != 0 ? cudaSuccess
                                                                                   : cudaErrorInvalidValue;
  });
}

CUresult multicast_granularity(std::size_t* bytes, const CUmulticastObjectProp* properties,
                               CUmulticastGranularity_flags) {
  if (bytes == nullptr || properties == nullptr || properties->numDevices == 0) return CUDA_ERROR_INVALID_VALUE;
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}

}  // namespace tutti::cudart
