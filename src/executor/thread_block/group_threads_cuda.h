// Thread group for a group of 128 elements on a GPU: a warp, with four elements per thread.
#pragma once

#include <cstdint>

#include "src/compression/format.h"

namespace tutti {

// Thread blocks consist of whole warps. All threads of a warp must call these functions together.
class GroupThreads {
 public:
  static constexpr std::uint32_t kThreads = 32;
  // Groups in flight. Formats with several scale blocks per group are rare, and every variant is code for each
  // architecture.
  template <std::uint32_t kScaleBlock>
  static constexpr std::uint32_t kGroups = kScaleBlock == kCompressionGroup ? 3 : 2;
  template <std::uint32_t kScaleBlock>
  static constexpr std::uint32_t kShare = kCompressionGroup / kThreads;

  __device__ GroupThreads(std::uint32_t thread, std::uint32_t thread_count)
      : thread_(thread), thread_count_(thread_count) {}

  __device__ std::uint32_t first() const { return thread_ / kThreads; }
  __device__ std::uint32_t step() const { return thread_count_ / kThreads; }
  __device__ std::uint32_t index() const { return thread_ % kThreads; }

  template <std::uint32_t kScaleBlock>
  __device__ static std::uint32_t largest(std::uint32_t own) {
    constexpr std::uint32_t kTogether = kScaleBlock / kShare<kScaleBlock>;
    if constexpr (kTogether == kThreads) {
      return __reduce_max_sync(kAll, own);
    } else {
      for (std::uint32_t apart = kTogether / 2; apart > 0; apart /= 2) {
        const std::uint32_t other = __shfl_xor_sync(kAll, own, static_cast<int>(apart));
        own = other > own ? other : own;
      }
      return own;
    }
  }
  __device__ static bool all(bool own) { return __all_sync(kAll, own) != 0; }
  __device__ static void join() { __syncwarp(); }

 private:
  static constexpr std::uint32_t kAll = ~0U;

  const std::uint32_t thread_, thread_count_;
};

}  // namespace tutti
