// What a GPU has given, and what it has been given back and keeps.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "src/executor/cuda/virtual_memory.h"
#include "src/executor/thread_block/kept_memory.h"

namespace tutti {

// Any thread, with the device current. Memory is as it was left.
class CudaMemory {
 public:
  explicit CudaMemory(int ordinal) : ordinal_(ordinal) {}

  Result<std::byte*> take(std::size_t bytes);
  // The same, and a file by which other processes open it; none if the device has no such memory: then it is as take()
  // gives.
  Result<std::byte*> take_shared(std::size_t bytes, File& file);
  void keep(std::byte* memory);
  // Is never taken again; given back by free_kept(), if it was taken with a file: other processes then have it still.
  void set_aside(std::byte* memory);
  void free(std::byte* memory);
  void free_kept();

 private:
  struct Taken {
    std::size_t bytes = 0;
    VirtualMemory shared;  // Empty: it was taken plainly.
  };
  static KeptMemory::Kind kind_of(const Taken& taken) { return {taken.bytes, taken.shared.data() != nullptr}; }
  std::byte* take_kept(const KeptMemory::Kind& kind);
  Result<File> file_of(std::byte* memory);

  const int ordinal_;
  std::mutex mutex_;
  std::map<std::byte*, Taken> taken_;
  KeptMemory kept_;
};

}  // namespace tutti
