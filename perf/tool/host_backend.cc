// Host memory: private to the process, or mappable by other ranks.
#include <cstdlib>
#include <cstring>

#include "perf/tool/fail.h"
#include "perf/tool/memory_backend.h"

namespace perf {
namespace {

class HostBackend final : public MemoryBackend {
 public:
  explicit HostBackend(Memory kind) : kind_(kind) {}

  std::string memory() const override { return "host"; }
  std::string description() const override { return kind_ == Memory::host ? "host memory" : "mapped host memory"; }
  tutti_stream stream() const override { return nullptr; }

  void* allocate(std::size_t bytes) override {
    constexpr std::size_t page = 4096;
    const std::size_t size = (bytes + page) / page * page;
    void* memory = nullptr;
    if (kind_ == Memory::mapped) {
      require(tutti_mem_alloc(&memory, size), "tutti_mem_alloc");
    } else {
      memory = std::aligned_alloc(page, size);
    }
    if (memory == nullptr) fail("no memory for a buffer of %zu bytes: give a smaller --maxbytes", size);
    std::memset(memory, 0, size);
    return memory;
  }
  void free(void* memory) override {
    if (kind_ == Memory::mapped) {
      require(tutti_mem_free(memory), "tutti_mem_free");
    } else {
      std::free(memory);
    }
  }

  void synchronize() override {}

 private:
  const Memory kind_;
};

}  // namespace

void MemoryBackend::poison(void* memory, std::size_t bytes) { std::memset(memory, kPoison, bytes); }

void MemoryBackend::fill(void* memory, const Pattern& pattern, int rank, std::size_t count) {
  pattern.fill(memory, rank, 0, count);
}

std::uint64_t MemoryBackend::wrong(const void* memory, const Pattern& pattern, const Output& output) {
  return pattern.wrong(memory, output);
}

void MemoryBackend::put(void* memory, const void* from, std::size_t bytes) { std::memcpy(memory, from, bytes); }
void MemoryBackend::get(const void* memory, void* to, std::size_t bytes) { std::memcpy(to, memory, bytes); }

std::unique_ptr<MemoryBackend> host_backend(Memory memory) { return std::make_unique<HostBackend>(memory); }

}  // namespace perf
