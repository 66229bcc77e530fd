// A multicast object: switches reduce and store the memory that several devices have bound to it, at one address.
#pragma once

#include "src/executor/cuda/virtual_memory.h"
#include "src/executor/thread_block/device.h"

namespace tutti {

class Multicast final : public DeviceMulticast {
 public:
  // True if the device and its driver support multicast objects.
  static bool offered(int ordinal);
  // Creates an object for memory like this one on each of `devices`, to which the device is added. It must be current.
  static Result<std::unique_ptr<Multicast>> create(int ordinal, const VirtualMemory& memory, std::uint32_t devices);
  // Opens the object of another rank, and adds the device.
  static Result<std::unique_ptr<Multicast>> open(int ordinal, const VirtualMemory& memory, const DeviceShare& share,
                                                 const File& file);
  ~Multicast() override;

  Result<DeviceShare> share(File& file) const override { return export_share(handle_, kind_, file); }
  // Binds memory of the device at the begin of the object, and returns the multicast address. All devices must have
  // been added.
  Result<std::byte*> bind(const VirtualMemory& memory);

 private:
  Multicast(int ordinal, const VirtualMemory& memory)
      : ordinal_(ordinal), bytes_(memory.bytes()), kind_(memory.kind()) {}

  const int ordinal_;
  const std::size_t bytes_;
  const ShareKind kind_;
  unsigned long long handle_ = 0;   // 0: none.
  unsigned long long address_ = 0;  // 0: none.
  bool bound_ = false, mapped_ = false;
};

}  // namespace tutti
