// Thread group for an LL128 line on a GPU: 8 adjacent threads of a warp, 16 bytes each. The stores of a group form one
// access to one cache line.
#pragma once

#include <cstring>

#include "src/base/atomic.h"
#include "src/executor/thread_block/ll128_line.h"

namespace tutti {

// `thread_count` is a multiple of 8, and thread 0 is at a multiple of 8 in its warp. All threads of a group must call
// these functions together.
class Ll128Threads {
 public:
  static constexpr std::uint32_t kThreads = 8;

  __device__ Ll128Threads(std::uint32_t thread, std::uint32_t thread_count)
      : thread_(thread), thread_count_(thread_count), mask_(0xffU << (threadIdx.x % 32 / kThreads * kThreads)) {}

  __device__ std::uint32_t first() const { return thread_ / kThreads; }
  __device__ std::uint32_t step() const { return thread_count_ / kThreads; }
  __device__ bool leads() const { return index() == kThreads - 1; }
  __device__ bool all_done(bool done) const {
    const bool all = __all_sync(mask_, done) != 0;
    __syncwarp(mask_);  // The leader's acquire is visible to all threads.
    return all;
  }

  // The last thread stores the last 8 bytes of data and the flag.
  __device__ void put(std::byte* line, std::uint64_t flag, const std::byte* from, std::uint32_t bytes) const {
    const std::uint64_t low = word(from, bytes, 2 * index());
    const std::uint64_t high = leads() ? flag : word(from, bytes, 2 * index() + 1);
    __syncwarp(mask_);
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(line + index() * 16), "l"(low), "l"(high)
                 : "memory");
  }

  // Call after all_done() returned true.
  __device__ void take(const std::byte* line, std::byte* to, std::uint32_t bytes) const {
    std::uint64_t low, high;
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(low), "=l"(high)
                 : "l"(line + index() * 16)
                 : "memory");
    store_word(to, bytes, 2 * index(), low);
    if (!leads()) store_word(to, bytes, 2 * index() + 1, high);
  }

 private:
  __device__ std::uint32_t index() const { return thread_ % kThreads; }

  // Word `nth` of `bytes` bytes of data, padded with zeroes.
  __device__ static std::uint64_t word(const std::byte* from, std::uint32_t bytes, std::uint32_t nth) {
    std::uint64_t value = 0;
    const std::uint32_t begin = nth * 8;
    if (begin + 8 <= bytes && reinterpret_cast<std::uintptr_t>(from) % 8 == 0) {
      value = *reinterpret_cast<const std::uint64_t*>(from + begin);
    } else if (begin < bytes) {
      std::memcpy(&value, from + begin, bytes - begin < 8 ? bytes - begin : 8);
    }
    return value;
  }
  __device__ static void store_word(std::byte* to, std::uint32_t bytes, std::uint32_t nth, std::uint64_t value) {
    const std::uint32_t begin = nth * 8;
    if (begin + 8 <= bytes) {
      *reinterpret_cast<std::uint64_t*>(to + begin) = value;
    } else if (begin < bytes) {
      std::memcpy(to + begin, &value, bytes - begin);
    }
  }

  const std::uint32_t thread_, thread_count_, mask_;
};

}  // namespace tutti
