// Buffers and windows that a program has registered with a communicator. Registrations of buffers are only validated;
// see docs/design/nccl-shim.md.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

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

// Windows of a communicator, with the program's memory. Thread-safe.
class UserWindows {
 public:
  void add(const void* window, void* memory);
  void remove(const void* window);
  void* find(const void* window) const;  // Null: not a window of this communicator.
  bool empty() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void*, void*> memories_;
};

}  // namespace tutti::nccl
