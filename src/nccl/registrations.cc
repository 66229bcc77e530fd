#include "src/nccl/registrations.h"

#include <atomic>

namespace tutti::nccl {
namespace {

// Odd, so that no object of the program has this address.
constinit std::atomic<std::uintptr_t> next_number = 1;

}  // namespace

void* Registrations::add() {
  const std::uintptr_t number = next_number.fetch_add(2, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  numbers_.insert(number);
  return reinterpret_cast<void*>(number);
}

bool Registrations::remove(const void* handle) {
  const std::lock_guard lock(mutex_);
  return numbers_.erase(reinterpret_cast<std::uintptr_t>(handle)) > 0;
}

void UserWindows::add(const void* handle, const UserWindow& window) {
  const std::lock_guard lock(mutex_);
  windows_[handle] = window;
}

void UserWindows::remove(const void* handle) {
  const std::lock_guard lock(mutex_);
  windows_.erase(handle);
}

std::optional<UserWindow> UserWindows::find(const void* handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find(handle);
  return found == windows_.end() ? std::nullopt : std::optional(found->second);
}

bool UserWindows::empty() const {
  const std::lock_guard lock(mutex_);
  return windows_.empty();
}

}  // namespace tutti::nccl
