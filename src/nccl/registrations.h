// Buffers and windows that a program has registered with a communicator. Registrations of buffers are only validated;
// see docs/design/nccl-shim.md.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "tutti/tutti.h"

namespace tutti::nccl {

class Registrations {
 public:
  // Returns a handle that is unique in the process. Never null. Thread-safe.
  void* add();
  // Returns false if `handle` is not registered here.
  bool remove(const void* handle);

 private:
  std::mutex mutex_;
  std::unordered_set<std::uintptr_t> numbers_;
};

// A window of a program. Its handle is the window of tutti.h, or with a fallback library that library's.
struct UserWindow {
  void* memory = nullptr;
  tutti_window window = nullptr;  // Null if tutti.h has none.
};

// Windows of a communicator, by handle. Thread-safe.
class UserWindows {
 public:
  void add(const void* handle, const UserWindow& window);
  void remove(const void* handle);
  std::optional<UserWindow> find(const void* handle) const;  // Nullopt: not a window of this communicator.
  bool empty() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void*, UserWindow> windows_;
};

}  // namespace tutti::nccl
