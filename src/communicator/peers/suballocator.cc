#include "src/communicator/peers/suballocator.h"

#include <algorithm>
#include <utility>

#include "src/base/pages.h"

namespace tutti {
namespace {

// Suffices for most communicators, because further allocations may wait for the device.
constexpr std::size_t kMinAllocationBytes = std::size_t{4} << 20;
constexpr std::size_t kDevicePageBytes = std::size_t{2} << 20;  // Devices allocate such pages.

}  // namespace

Suballocator::~Suballocator() {
  for (std::byte* allocation : allocations_) device_.recycle(allocation);
}

Status Suballocator::reserve(std::size_t bytes) {
  if (bytes <= left_) return {};
  const std::size_t allocated = std::max(round_up(bytes, kDevicePageBytes), kMinAllocationBytes);
  free_ = TUTTI_TRY((device_.*allocate_)(allocated));
  left_ = allocated;
  allocations_.push_back(free_);
  bytes_ += allocated;
  return {};
}

Result<std::byte*> Suballocator::cut(std::size_t bytes) {
  const std::size_t room = round_up(bytes, kUnitBytes);
  TUTTI_CHECK_OK(reserve(room));
  left_ -= room;
  return std::exchange(free_, free_ + room);
}

}  // namespace tutti
