#include "src/communicator/peers/direct_slots.h"

#include <utility>

#include "src/base/pages.h"

namespace tutti {
namespace {

constexpr std::size_t kUnitBytes = 2 << 20;  // Aligns the region to pages that GPUs and their drivers map.

Result<RegisteredRegion> take(const std::shared_ptr<Device>& device, const DirectSlots& slots,
                              const RegisterRegion& register_region) {
  const DeviceTraits& traits = device->traits();
  DeviceRegion region = {.memory = nullptr,
                         .bytes = slots.bytes,
                         .kind = traits.memory,
                         .ordered = traits.orders_writes,
                         .gpudirect_required = slots.wanted == GpuDirect::on,
                         .no_dma_buf = "",
                         .name = traits.name};
  std::byte* memory = TUTTI_TRY(device->allocate(slots.bytes));
  region.memory = LaneMemory(memory, [device](std::byte* freed) { device->recycle(freed); });
  Result<File> dma_buf = device->dma_buf_of(memory, slots.bytes);
  File descriptor;
  if (dma_buf.ok()) {
    descriptor = std::move(dma_buf).value();
    region.dma_buf = descriptor.get();
  } else {
    region.no_dma_buf = std::move(dma_buf).status().message();
  }
  return register_region(region);
}

}  // namespace

// Tries a small region first. The device caches it for the next attempt if it cannot be registered.
Result<RegisteredRegion> take_direct_slots(const std::shared_ptr<Device>& device, const DirectSlots& slots,
                                           const RegisterRegion& register_region) {
  if (slots.wanted == GpuDirect::off) return unsupported("TUTTI_GPUDIRECT is off");
  TUTTI_TRY(take(device, {kUnitBytes, slots.wanted}, register_region));
  return take(device, {round_up(slots.bytes, kUnitBytes), slots.wanted}, register_region);
}

}  // namespace tutti
