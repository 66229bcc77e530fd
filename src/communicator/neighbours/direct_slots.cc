#include "src/communicator/neighbours/direct_slots.h"

#include <utility>

#include "src/base/pages.h"

namespace tutti {
namespace {

constexpr std::size_t kUnitBytes = 2 << 20;  // So that it begins where GPUs and their drivers map pages.

Result<ReachedBlock> take(const std::shared_ptr<Device>& device, std::size_t bytes, const ReachBlock& reach) {
  const DeviceTraits& traits = device->traits();
  DeviceBlock block = {.memory = nullptr,
                       .bytes = bytes,
                       .kind = traits.memory,
                       .ordered = traits.orders_writes,
                       .no_dma_buf = "",
                       .name = traits.name};
  std::byte* memory = TUTTI_TRY(device->allocate(bytes));
  block.memory = LaneMemory(memory, [device](std::byte* freed) { device->recycle(freed); });
  Result<File> dma_buf = device->dma_buf_of(memory, bytes);
  File descriptor;
  if (dma_buf.ok()) {
    descriptor = std::move(dma_buf).value();
    block.dma_buf = descriptor.get();
  } else {
    block.no_dma_buf = std::move(dma_buf).status().message();
  }
  return reach(block);
}

}  // namespace

// A piece first: what was taken in vain the device keeps for who wants as much again.
Result<ReachedBlock> take_direct_slots(const std::shared_ptr<Device>& device, std::size_t bytes,
                                       const ReachBlock& reach) {
  TUTTI_TRY(take(device, kUnitBytes, reach));
  return take(device, round_up(bytes, kUnitBytes), reach);
}

}  // namespace tutti
