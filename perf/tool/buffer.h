// Memory to send from and to receive into, of the kind that --memory asks for.
#pragma once

#include <cstdlib>
#include <cstring>

#include "perf/tool/fail.h"
#include "perf/tool/options.h"

namespace perf {

class Buffer {
 public:
  Buffer(Memory kind, std::size_t bytes) : kind_(kind) {
    constexpr std::size_t page = 4096;
    const std::size_t size = (bytes + page) / page * page;
    if (kind == Memory::registered) {
      require(tutti_mem_alloc(&memory_, size), "tutti_mem_alloc");
    } else {
      memory_ = std::aligned_alloc(page, size);
    }
    if (memory_ == nullptr) fail("no memory for a buffer of %zu bytes: give a smaller --maxbytes", size);
    std::memset(memory_, 0, size);  // Touches every page now rather than in a timed call.
  }
  ~Buffer() {
    if (kind_ == Memory::registered) {
      require(tutti_mem_free(memory_), "tutti_mem_free");
    } else {
      std::free(memory_);
    }
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  char* at(std::size_t offset) { return static_cast<char*>(memory_) + offset; }

 private:
  Memory kind_;
  void* memory_ = nullptr;
};

}  // namespace perf
