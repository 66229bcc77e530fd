#include "tests/executor/device_memory.h"

#include <algorithm>
#include <new>

namespace tutti::test {
namespace {

constexpr std::size_t kRoom = std::size_t{8} << 20;
constexpr std::size_t kAlignment = 256;  // Total of all chunks.

}  // namespace

void* DeviceReach::do_allocate(std::size_t bytes, std::size_t) {
  const HostMemory memory = device_.allocate_host(bytes).value();
  TUTTI_ASSERT(memory.device == memory.host);
  taken_[memory.host] = memory;
  return memory.host;
}

void DeviceReach::do_deallocate(void* memory, std::size_t, std::size_t) {
  const auto taken = taken_.find(memory);
  device_.free_host(taken->second);
  taken_.erase(taken);
}

DeviceArena::DeviceArena(Device& device) : device_(device), memory_(device.allocate(kRoom).value()) {}

void* DeviceArena::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (taken_ == 0 && used_ > 0) {
    zeroes_.resize(std::max(zeroes_.size(), used_));
    if (!device_.upload(memory_, {zeroes_.data(), used_}).ok()) throw std::bad_alloc();
    used_ = 0;
  }
  const std::size_t room = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (alignment > kAlignment || room > kRoom - used_) throw std::bad_alloc();
  std::byte* chunk = memory_ + used_;
  used_ += room;
  ++taken_;
  return chunk;
}

}  // namespace tutti::test
