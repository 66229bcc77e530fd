#include "src/communicator/peers/rank_device_memory.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <set>
#include <utility>

#include "src/communicator/peers/deferred_frees.h"
#include "src/communicator/peers/multicast.h"
#include "transports/lay_lane.h"

namespace tutti {
namespace {

constexpr std::size_t kMaxClass = std::size_t{2} << 20;  // Retired memory from this size on is reused for equal sizes.
constexpr std::size_t kMinReused = Suballocator::kUnitBytes;

std::size_t class_of(std::size_t bytes) {
  return static_cast<std::size_t>(std::countr_zero(std::bit_ceil(std::max(bytes, kMinReused)))) - 8;
}

struct Registry {
  std::mutex mutex;
  std::map<std::uint64_t, std::weak_ptr<RankDeviceMemory>> memories;
  std::uint64_t next = 1;
  std::set<const RankDeviceMemory*> with_large_lanes;
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

bool RankDeviceMemory::has_large_lanes(const DeviceIdentity& device) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return std::any_of(all.with_large_lanes.begin(), all.with_large_lanes.end(),
                     [&](const auto* memory) { return memory->device().traits().identity == device; });
}

void RankDeviceMemory::set_large_lanes() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.with_large_lanes.insert(this);
}

RankDeviceMemory::~RankDeviceMemory() {
  {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    all.with_large_lanes.erase(this);
  }
  free_exported_lanes();
}

void RankDeviceMemory::retain_exported_lanes() {
  const std::lock_guard lock(mutex_);
  if (exported_ != nullptr) device_->set_aside(std::exchange(exported_, nullptr));
  for (auto& object : multicast_) (void)object.release();  // Calls of peers may store at multicast addresses, too.
  multicast_.clear();
}

void RankDeviceMemory::free_exported_lanes() {
  std::unique_lock lock(mutex_);
  auto multicast = std::exchange(multicast_, {});
  lock.unlock();
  for (auto& object : multicast) destroy_when_idle(std::move(object));
  lock.lock();
  if (exported_ != nullptr) device_->recycle(std::exchange(exported_, nullptr));
  if (exported_bytes_ != 0) records_ = nullptr, ring_ = nullptr;  // They were behind the exported lanes.
  exported_bytes_ = 0;
}

// A separate allocation, because other processes open all of it.
Result<DeviceShare> RankDeviceMemory::allocate_exported_lanes(std::size_t bytes, File& file, std::size_t ring_bytes) {
  std::byte* memory =
      TUTTI_TRY(allocate_or_free_cached(device_, &Device::allocate_shared, bytes + kRecordsBytes + ring_bytes));
  return export_lanes(memory, bytes, ring_bytes, file);
}

Result<DeviceShare> RankDeviceMemory::allocate_lanes_for_domain(std::size_t bytes, std::size_t ring_bytes) {
  std::byte* memory =
      TUTTI_TRY(allocate_or_free_cached(device_, &Device::allocate_for_domain, bytes + kRecordsBytes + ring_bytes));
  File none;
  return export_lanes(memory, bytes, ring_bytes, none);
}

Result<DeviceShare> RankDeviceMemory::export_lanes(std::byte* memory, std::size_t bytes, std::size_t ring_bytes,
                                                   File& file) {
  const std::lock_guard lock(mutex_);
  exported_ = memory;
  exported_bytes_ = bytes + kRecordsBytes + ring_bytes;
  records_ = reinterpret_cast<AddressRecord*>(exported_ + bytes);
  if (ring_bytes > 0) ring_ = exported_ + bytes + kRecordsBytes;
  return device_->share_of(exported_, exported_bytes_, file);
}

std::byte* RankDeviceMemory::keep_multicast(std::unique_ptr<DeviceMulticast> object, std::byte* address) {
  const std::lock_guard lock(mutex_);
  multicast_.push_back(std::move(object));
  return address + (ring_ - exported_);
}

void RankDeviceMemory::keep_multicast_of_windows(std::vector<std::unique_ptr<DeviceMulticast>> objects) {
  const std::lock_guard lock(mutex_);
  for (auto& object : objects) multicast_.push_back(std::move(object));
}

Result<LanePair> RankDeviceMemory::lane(const LaneSpec& spec) {
  const std::lock_guard lock(mutex_);
  const auto known = lanes_.find(spec);
  if (known != lanes_.end()) return known->second;
  std::byte* memory = TUTTI_TRY(for_peers_.cut(kControlBytes + slots_bytes(spec)));
  return lanes_[spec] = lay_lane(spec, memory, memory + kControlBytes);
}

Result<AddressRecord*> RankDeviceMemory::records() {
  const std::lock_guard lock(mutex_);
  if (records_ == nullptr) {
    std::byte* memory = TUTTI_TRY(for_peers_.cut(kRecordsBytes));
    records_ = reinterpret_cast<AddressRecord*>(memory);
  }
  return records_;
}

Result<std::byte*> RankDeviceMemory::ring(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (ring_ == nullptr) ring_ = TUTTI_TRY(for_peers_.cut(bytes));
  return ring_;
}

std::size_t RankDeviceMemory::bytes() const {
  const std::lock_guard lock(mutex_);
  return for_peers_.bytes() + own_.bytes() + exported_bytes_;
}

Status RankDeviceMemory::reserve(const Reserve& wanted) {
  const std::lock_guard lock(mutex_);
  TUTTI_CHECK_OK(for_peers_.reserve(wanted.lanes + (records_ == nullptr ? kRecordsBytes : 0) +
                                    (ring_ == nullptr ? wanted.ring : 0)));
  return own_.reserve(wanted.own);
}

Result<std::byte*> RankDeviceMemory::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return own_.cut(bytes);
}

// Memory for reuse is allocated with the size of its class, so that all requests of the class can use it.
Result<std::byte*> RankDeviceMemory::allocate_uncleared(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const bool large = bytes >= kMaxClass;
  auto& retired = large ? large_[bytes] : retired_[class_of(bytes)];
  const auto done =
      std::find_if(retired.begin(), retired.end(), [this](const Retired& one) { return one.number < done_before_; });
  if (done == retired.end()) return own_.cut(large ? bytes : kMinReused << class_of(bytes));
  std::byte* memory = done->memory;
  retired.erase(done);
  return memory;
}

void RankDeviceMemory::retire(std::byte* memory, std::size_t bytes, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (memory != nullptr) (bytes < kMaxClass ? retired_[class_of(bytes)] : large_[bytes]).push_back({memory, number});
}

void RankDeviceMemory::done_before(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  done_before_ = std::max(done_before_, number);
}

}  // namespace tutti
