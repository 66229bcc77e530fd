#include "src/communicator/peers/rank_device_memory.h"

#include "transports/lay_lane.h"

namespace tutti {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::uint64_t, std::weak_ptr<RankDeviceMemory>> memories;
  std::uint64_t next = 1;
};

// Never destroyed: communicators may outlive the program's static objects.
Registry& registry() {
  static Registry& all = *new Registry;
  return all;
}

}  // namespace

std::uint64_t RankDeviceMemory::publish(const std::shared_ptr<RankDeviceMemory>& memory) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.memories, [](const auto& entry) { return entry.second.expired(); });
  all.memories[all.next] = memory;
  return all.next++;
}

std::shared_ptr<RankDeviceMemory> RankDeviceMemory::find(std::uint64_t number) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.memories.find(number);
  return found == all.memories.end() ? nullptr : found->second.lock();
}

RankDeviceMemory::~RankDeviceMemory() { free_exported_lanes(); }

void RankDeviceMemory::retain_exported_lanes() {
  const std::lock_guard lock(mutex_);
  if (exported_ != nullptr) device_->set_aside(std::exchange(exported_, nullptr));
}

void RankDeviceMemory::free_exported_lanes() {
  const std::lock_guard lock(mutex_);
  if (exported_ != nullptr) device_->recycle(std::exchange(exported_, nullptr));
  if (exported_bytes_ != 0) records_ = nullptr;  // The records were among the exported lanes.
  exported_bytes_ = 0;
}

// A separate allocation, because other processes open all of it.
Status RankDeviceMemory::allocate_exported_lanes(std::size_t bytes, DeviceHandle& handle, File& file) {
  exported_ = TUTTI_TRY(device_->allocate_shared(bytes + kRecordsBytes, file));
  exported_bytes_ = bytes + kRecordsBytes;
  records_ = reinterpret_cast<AddressRecord*>(exported_ + bytes);
  if (!file) handle = TUTTI_TRY(device_->handle_of(exported_));
  return {};
}

Result<LanePair> RankDeviceMemory::lane(const LaneSpec& spec) {
  const std::lock_guard lock(mutex_);
  const auto known = lanes_.find(spec);
  if (known != lanes_.end()) return known->second;
  std::byte* memory = TUTTI_TRY(arena_.allocate(kControlBytes + slots_bytes(spec)));
  return lanes_[spec] = lay_lane(spec, memory, memory + kControlBytes);
}

Result<AddressRecord*> RankDeviceMemory::records() {
  const std::lock_guard lock(mutex_);
  if (records_ == nullptr) {
    std::byte* memory = TUTTI_TRY(arena_.allocate(kRecordsBytes));
    records_ = reinterpret_cast<AddressRecord*>(memory);
  }
  return records_;
}

Status RankDeviceMemory::reserve(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return arena_.reserve(bytes);
}

Result<std::byte*> RankDeviceMemory::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return arena_.allocate(bytes);
}

Result<std::byte*> RankDeviceMemory::allocate_uncleared(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return arena_.allocate_uncleared(bytes);
}

void RankDeviceMemory::retire(std::byte* memory, std::size_t bytes, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  arena_.retire(memory, bytes, number);
}

void RankDeviceMemory::done_before(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  arena_.done_before(number);
}

std::size_t RankDeviceMemory::bytes() const {
  const std::lock_guard lock(mutex_);
  return arena_.bytes() + exported_bytes_;
}

}  // namespace tutti
