// Buffers that a program has registered with a communicator. Registrations are only validated; see
// docs/design/nccl-shim.md.
#pragma once

#include <cstdint>
#include <mutex>
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

}  // namespace tutti::nccl
