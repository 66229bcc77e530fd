#include "src/communicator/peers/home.h"

#include "transports/lay_lane.h"

namespace tutti {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::uint64_t, std::weak_ptr<DeviceHome>> homes;
  std::uint64_t next = 1;
};

// Never destroyed: communicators may outlive the program's static objects.
Registry& registry() {
  static Registry& all = *new Registry;
  return all;
}

}  // namespace

std::uint64_t DeviceHome::publish(const std::shared_ptr<DeviceHome>& home) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.homes, [](const auto& entry) { return entry.second.expired(); });
  all.homes[all.next] = home;
  return all.next++;
}

std::shared_ptr<DeviceHome> DeviceHome::find(std::uint64_t number) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.homes.find(number);
  return found == all.homes.end() ? nullptr : found->second.lock();
}

DeviceHome::~DeviceHome() { close_inboxes(); }

void DeviceHome::set_inboxes_aside() {
  const std::lock_guard lock(mutex_);
  if (inboxes_ != nullptr) device_->set_aside(std::exchange(inboxes_, nullptr));
}

void DeviceHome::close_inboxes() {
  const std::lock_guard lock(mutex_);
  if (inboxes_ != nullptr) device_->recycle(std::exchange(inboxes_, nullptr));
  if (inboxes_bytes_ != 0) records_ = nullptr;  // The records were in the inboxes.
  inboxes_bytes_ = 0;
}

// A separate allocation, because other processes open all of it.
Status DeviceHome::open_inboxes(std::size_t bytes, DeviceHandle& handle, File& file) {
  inboxes_ = TUTTI_TRY(device_->allocate_shared(bytes + kRecordsBytes, file));
  inboxes_bytes_ = bytes + kRecordsBytes;
  records_ = reinterpret_cast<AddressRecord*>(inboxes_ + bytes);
  if (!file) handle = TUTTI_TRY(device_->handle_of(inboxes_));
  return {};
}

Result<LanePair> DeviceHome::lane(const LaneSpec& spec) {
  const std::lock_guard lock(mutex_);
  const auto known = lanes_.find(spec);
  if (known != lanes_.end()) return known->second;
  std::byte* memory = TUTTI_TRY(arena_.take(kControlBytes + slots_bytes(spec)));
  return lanes_[spec] = lay_lane(spec, memory, memory + kControlBytes);
}

Result<AddressRecord*> DeviceHome::records() {
  const std::lock_guard lock(mutex_);
  if (records_ == nullptr) {
    std::byte* memory = TUTTI_TRY(arena_.take(kRecordsBytes));
    records_ = reinterpret_cast<AddressRecord*>(memory);
  }
  return records_;
}

Status DeviceHome::reserve(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return arena_.reserve(bytes);
}

Result<std::byte*> DeviceHome::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return arena_.take(bytes);
}

Result<std::byte*> DeviceHome::take_any(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return arena_.take_any(bytes);
}

void DeviceHome::retire(std::byte* memory, std::size_t bytes, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  arena_.retire(memory, bytes, number);
}

void DeviceHome::done_before(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  arena_.done_before(number);
}

std::size_t DeviceHome::bytes() const {
  const std::lock_guard lock(mutex_);
  return arena_.bytes() + inboxes_bytes_;
}

}  // namespace tutti
