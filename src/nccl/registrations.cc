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

void UserWindows::add(const void* window, void* memory) {
  const std::lock_guard lock(mutex_);
  memories_[window] = memory;
}

void UserWindows::remove(const void* window) {
  const std::lock_guard lock(mutex_);
  memories_.erase(window);
}

void* UserWindows::find(const void* window) const {
  const std::lock_guard lock(mutex_);
  const auto found = memories_.find(window);
  return found == memories_.end() ? nullptr : found->second;
}

bool UserWindows::empty() const {
  const std::lock_guard lock(mutex_);
  return memories_.empty();
}

}  // namespace tutti::nccl
