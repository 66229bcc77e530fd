#include "src/communicator/peers/arena.h"

#include <algorithm>
#include <bit>

namespace tutti {
namespace {

// Suffices for most communicators, because further allocations may wait for the device.
constexpr std::size_t kChunkBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxChunk = std::size_t{2} << 20;  // Retired chunks from this size on are not reused.
constexpr std::size_t kMinChunk = 256;

std::size_t class_of(std::size_t bytes) {
  return static_cast<std::size_t>(std::countr_zero(std::bit_ceil(std::max(bytes, kMinChunk)))) - 8;
}

}  // namespace

DeviceArena::~DeviceArena() {
  for (std::byte* chunk : chunks_) device_->recycle(chunk);
}

Status DeviceArena::reserve(std::size_t bytes) {
  if (bytes <= left_) return {};
  const std::size_t chunk = std::max(bytes, kChunkBytes);
  free_ = TUTTI_TRY(device_->allocate(chunk));
  left_ = chunk;
  chunks_.push_back(free_);
  bytes_ += chunk;
  return {};
}

Result<std::byte*> DeviceArena::allocate(std::size_t bytes) {
  const std::size_t room = (bytes + kMinChunk - 1) / kMinChunk * kMinChunk;
  TUTTI_CHECK_OK(reserve(room));
  std::byte* memory = free_;
  free_ += room;
  left_ -= room;
  return memory;
}

// Chunks for reuse are allocated with the size of their class, so that all requests of the class can use them.
Result<std::byte*> DeviceArena::allocate_uncleared(std::size_t bytes) {
  if (bytes >= kMaxChunk) return allocate(bytes);
  const std::size_t which = class_of(bytes);
  auto& chunks = retired_[which];
  const auto done =
      std::find_if(chunks.begin(), chunks.end(), [this](const Retired& chunk) { return chunk.number < done_before_; });
  if (done == chunks.end()) return allocate(kMinChunk << which);
  std::byte* memory = done->memory;
  chunks.erase(done);
  return memory;
}

void DeviceArena::retire(std::byte* memory, std::size_t bytes, std::uint64_t number) {
  if (memory != nullptr && bytes < kMaxChunk) retired_[class_of(bytes)].push_back({memory, number});
}

void DeviceArena::done_before(std::uint64_t number) { done_before_ = std::max(done_before_, number); }

}  // namespace tutti
