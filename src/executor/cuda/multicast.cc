#include "src/executor/cuda/multicast.h"

#include <string>

#include "src/executor/cuda/driver.h"

namespace tutti {

bool Multicast::offered(int ordinal) {
  if (!driver().has_multicast() || !VirtualMemory::offers_files(ordinal)) return false;
  int supported = 0;
  return driver().attribute(&supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, ordinal).ok() && supported != 0;
}

Result<std::unique_ptr<Multicast>> Multicast::create(int ordinal, const VirtualMemory& memory, std::uint32_t devices) {
  const std::size_t bytes = memory.bytes();
  CUmulticastObjectProp wanted = {};
  wanted.numDevices = devices;
  wanted.size = bytes;
  wanted.handleTypes = memory.kind() == ShareKind::fabric ? kFabricHandles : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  std::size_t unit = 0;
  TUTTI_CHECK_OK(driver().multicast_granularity(&unit, &wanted, CU_MULTICAST_GRANULARITY_MINIMUM));
  if (bytes % unit != 0)
    return unsupported("multicast objects are multiples of " + std::to_string(unit) + " bytes, the memory has " +
                       std::to_string(bytes));
  std::unique_ptr<Multicast> made(new Multicast(ordinal, memory));
  TUTTI_CHECK_OK(driver().create_multicast(&made->handle_, &wanted));
  TUTTI_CHECK_OK(driver().add_to_multicast(made->handle_, ordinal));
  return made;
}

Result<std::unique_ptr<Multicast>> Multicast::open(int ordinal, const VirtualMemory& memory, const DeviceShare& share,
                                                   const File& file) {
  std::unique_ptr<Multicast> made(new Multicast(ordinal, memory));
  made->handle_ = TUTTI_TRY(import_share(share, file));
  TUTTI_CHECK_OK(driver().add_to_multicast(made->handle_, ordinal));
  return made;
}

Result<std::byte*> Multicast::bind(const VirtualMemory& memory) {
  TUTTI_CHECK_OK(driver().bind(handle_, 0, memory.handle(), 0, bytes_, 0));
  bound_ = true;
  TUTTI_CHECK_OK(driver().reserve_addresses(&address_, bytes_, 0, 0, 0));
  TUTTI_CHECK_OK(driver().map(address_, bytes_, 0, handle_, 0));
  mapped_ = true;
  CUmemAccessDesc access = {};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal_};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  TUTTI_CHECK_OK(driver().set_access(address_, bytes_, &access, 1));
  return reinterpret_cast<std::byte*>(address_);
}

Multicast::~Multicast() {
  if (mapped_) (void)driver().unmap(address_, bytes_);
  if (address_ != 0) (void)driver().free_addresses(address_, bytes_);
  if (bound_) (void)driver().unbind(handle_, ordinal_, 0, bytes_);
  if (handle_ != 0) (void)driver().release_memory(handle_);
}

}  // namespace tutti
