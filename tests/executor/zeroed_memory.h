// Zeroed memory of this process for lanes of tests.
#pragma once

#include <cstring>
#include <memory_resource>

namespace tutti::test {

class ZeroedMemory final : public std::pmr::memory_resource {
 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    return std::memset(std::pmr::new_delete_resource()->allocate(bytes, alignment), 0, bytes);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace tutti::test
