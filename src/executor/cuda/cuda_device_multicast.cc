// Multicast objects of a CudaDevice.
#include "src/executor/cuda/cuda_device.h"
#include "src/executor/cuda/multicast.h"

namespace tutti {

Result<std::unique_ptr<DeviceMulticast>> CudaDevice::create_multicast(std::byte* memory, std::uint32_t devices) {
  const OnDevice here(ordinal_);
  using Made = Result<std::unique_ptr<DeviceMulticast>>;
  return memory_.with_shared(memory, [&](const VirtualMemory& shared, std::size_t) -> Made {
    return std::unique_ptr<DeviceMulticast>(TUTTI_TRY(Multicast::create(ordinal_, shared, devices)));
  });
}

Result<std::unique_ptr<DeviceMulticast>> CudaDevice::open_multicast(std::byte* memory, const DeviceShare& share,
                                                                    const File& file) {
  const OnDevice here(ordinal_);
  using Opened = Result<std::unique_ptr<DeviceMulticast>>;
  return memory_.with_shared(memory, [&](const VirtualMemory& shared, std::size_t) -> Opened {
    return std::unique_ptr<DeviceMulticast>(TUTTI_TRY(Multicast::open(ordinal_, shared, share, file)));
  });
}

Result<std::byte*> CudaDevice::bind(DeviceMulticast& object, std::byte* memory) {
  const OnDevice here(ordinal_);
  return memory_.with_shared(memory, [&](const VirtualMemory& shared, std::size_t offset) -> Result<std::byte*> {
    return TUTTI_TRY(static_cast<Multicast&>(object).bind(shared)) + offset;
  });
}

}  // namespace tutti
