// Thread group for a group of 128 elements on the host: one thread, one scale block after the other.
#pragma once

#include <cstdint>

#include "src/base/platform.h"

namespace tutti {

class GroupThreads {
 public:
  static constexpr std::uint32_t kThreads = 1;
  // Groups in flight.
  template <std::uint32_t kScaleBlock>
  static constexpr std::uint32_t kGroups = 1;
  // Elements per thread at a time: a scale block. On the GPU, a part of a scale block.
  template <std::uint32_t kScaleBlock>
  static constexpr std::uint32_t kShare = kScaleBlock;

  TUTTI_HOST_DEVICE GroupThreads(std::uint32_t thread, std::uint32_t thread_count)
      : thread_(thread), thread_count_(thread_count) {}

  // The thread group handles groups first(), first() + step(), ... In each of them, this thread's shares begin at
  // index(), index() + kThreads, ...
  TUTTI_HOST_DEVICE std::uint32_t first() const { return thread_; }
  TUTTI_HOST_DEVICE std::uint32_t step() const { return thread_count_; }
  TUTTI_HOST_DEVICE static constexpr std::uint32_t index() { return 0; }

  // Maximum over the threads that share a scale block.
  template <std::uint32_t kScaleBlock>
  TUTTI_HOST_DEVICE static std::uint32_t largest(std::uint32_t own) {
    return own;
  }
  // True if `own` is true for all threads of the thread group.
  TUTTI_HOST_DEVICE static bool all(bool own) { return own; }
  // Barrier: all threads have read what others may overwrite.
  TUTTI_HOST_DEVICE static void join() {}

 private:
  const std::uint32_t thread_, thread_count_;
};

}  // namespace tutti
