#include "src/communicator/device/arena.h"

#include <algorithm>
#include <bit>

namespace tutti {
namespace {

// Enough for most of what a communicator comes to need: to allocate more may wait for the device.
constexpr std::size_t kChunkBytes = std::size_t{8} << 20;
constexpr std::size_t kMostPiece = std::size_t{2} << 20;  // That is taken again.
constexpr std::size_t kLeastPiece = 256;

std::size_t class_of(std::size_t bytes) {
  return static_cast<std::size_t>(std::countr_zero(std::bit_ceil(std::max(bytes, kLeastPiece)))) - 8;
}

}  // namespace

DeviceArena::~DeviceArena() {
  for (std::byte* chunk : chunks_) device_->free(chunk);
}

// What may come back is as long as its class; what is too large for that is exact.
Result<std::byte*> DeviceArena::take(std::size_t bytes) {
  const bool in_class = bytes < kMostPiece;
  const std::size_t room =
      in_class ? kLeastPiece << class_of(bytes) : (bytes + kLeastPiece - 1) / kLeastPiece * kLeastPiece;
  if (room > left_) {
    const std::size_t chunk = std::max(room, kChunkBytes);
    std::byte* memory = TUTTI_TRY(device_->allocate(chunk));
    chunks_.push_back(memory);
    bytes_ += chunk;
    if (chunk - room < left_) return memory;  // The rest of the last chunk is the better one.
    free_ = memory;
    left_ = chunk;
  }
  std::byte* memory = free_;
  free_ += room;
  left_ -= room;
  return memory;
}

Result<std::byte*> DeviceArena::take_any(std::size_t bytes) {
  if (bytes >= kMostPiece) return take(bytes);
  auto& pieces = retired_[class_of(bytes)];
  const auto done =
      std::find_if(pieces.begin(), pieces.end(), [this](const Retired& piece) { return piece.number < done_before_; });
  if (done == pieces.end()) return take(bytes);
  std::byte* memory = done->memory;
  pieces.erase(done);
  return memory;
}

void DeviceArena::retire(std::byte* memory, std::size_t bytes, std::uint64_t number) {
  if (memory != nullptr && bytes < kMostPiece) retired_[class_of(bytes)].push_back({memory, number});
}

void DeviceArena::done_before(std::uint64_t number) { done_before_ = std::max(done_before_, number); }

}  // namespace tutti
