// Buffers and windows that a program has registered with a communicator.
#pragma once

#include <mutex>
#include <optional>
#include <unordered_map>

#include "tutti/tutti.h"

namespace tutti::nccl {

// A registration of a buffer is only validated; see docs/design/nccl-shim.md.
struct UserBuffer {};

// A window of a program. Its handle is the window of tutti.h, or with a fallback library that library's.
struct UserWindow {
  void* memory = nullptr;
  tutti_window window = nullptr;  // Null if tutti.h has none.
};

// Registrations of one communicator, by handle. Thread-safe.
template <typename Registered>
class Registrations {
 public:
  void add(const void* handle, const Registered& registered) {
    const std::lock_guard lock(mutex_);
    all_[handle] = registered;
  }
  // Returns false if `handle` is not registered here.
  bool remove(const void* handle) {
    const std::lock_guard lock(mutex_);
    return all_.erase(handle) > 0;
  }
  // Returns nullopt if `handle` is not registered here.
  std::optional<Registered> find(const void* handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(handle);
    return found == all_.end() ? std::nullopt : std::optional(found->second);
  }
  bool empty() const {
    const std::lock_guard lock(mutex_);
    return all_.empty();
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void*, Registered> all_;
};

}  // namespace tutti::nccl
