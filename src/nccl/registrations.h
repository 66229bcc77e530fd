// Buffers that a program has registered with a communicator. The library only validates them; see
// docs/design/nccl-shim.md.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_set>

namespace tutti::nccl {

class Registrations {
 public:
  // A handle that nothing else in this process has, of this communicator or another. Never null. Any thread.
  void* add();
  // False: it is none of these.
  bool remove(const void* handle);

 private:
  std::mutex mutex_;
  std::unordered_set<std::uintptr_t> numbers_;
};

}  // namespace tutti::nccl
