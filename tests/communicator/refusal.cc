#include "tests/communicator/refusal.h"

#include <cstdlib>
#include <new>

namespace tutti::test {
namespace {

thread_local std::uint64_t allocations_until_refusal = 0;  // 0: none fails.

}  // namespace

Refusal::Refusal(std::uint64_t which) { allocations_until_refusal = which; }
Refusal::~Refusal() { allocations_until_refusal = 0; }
bool Refusal::came() const { return allocations_until_refusal == 0; }

}  // namespace tutti::test

// Not inlined, like the functions that free. Otherwise GCC would see a free() of memory from another operator new.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  std::uint64_t& left = tutti::test::allocations_until_refusal;
  const bool refused = left > 0 && --left == 0;
  void* memory = refused ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes);  // Never refused, since the caller can handle null.
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
