// Memory of the GPU emulator: allocations, and freed memory that it caches like a GPU.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "src/executor/thread_block/free_list.h"
#include "transports/shm/segment.h"

namespace tutti::test {

// Thread-safe.
class EmulatorMemory {
 public:
  // `bytes`: total memory of the device with this name.
  EmulatorMemory(std::string name, std::size_t bytes) : name_(std::move(name)), bytes_(bytes) {}

  // Returns zeroed memory. Like a GPU, uses cached memory first.
  Result<std::byte*> take(const FreeList::Kind& kind);
  void keep(std::byte* memory);
  void set_aside(std::byte* memory);
  void free(std::byte* memory);
  void free_kept();

  // A live allocation. The device owns the descriptor.
  struct Range {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
    int descriptor = -1;
    bool shared = false;  // Allocated for other processes, with a file.
  };
  // Returns the allocation that contains the whole range.
  std::optional<Range> find(const std::byte* memory, std::size_t bytes) const;
  Result<File> file_of(std::byte* memory) const;

  struct Usage {
    std::uint64_t allocations = 0, bytes = 0;
  };
  Usage taken() const;
  Usage taken_or_kept() const;  // Also counts memory that is cached or set aside, like a driver.

 private:
  struct Allocation {
    Segment segment;
    FreeList::Kind kind;
    bool taken = true;  // False: cached, or set aside.
  };
  FreeList::Kind free_deferred(std::byte* memory);  // Returns the kind of the allocation.
  std::size_t left() const;

  const std::string name_;
  const std::size_t bytes_;
  mutable std::mutex mutex_;
  std::map<std::byte*, Allocation> all_;
  FreeList kept_;
};

}  // namespace tutti::test
