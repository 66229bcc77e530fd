// Thread group for a group of 128 elements on the host: one thread, block by block.
#pragma once

#include <cstdint>

#include "src/base/platform.h"

namespace tutti {

class GroupCrew {
 public:
  static constexpr std::uint32_t kWorkers = 1;
  // Groups in flight.
  template <std::uint32_t kBlock>
  static constexpr std::uint32_t kGroups = 1;
  // Elements per thread at a time: a block with its scale. On the GPU, a part of a block.
  template <std::uint32_t kBlock>
  static constexpr std::uint32_t kShare = kBlock;

  TUTTI_HOST_DEVICE GroupCrew(std::uint32_t worker, std::uint32_t workers) : worker_(worker), workers_(workers) {}

  // The thread group handles groups first(), first() + step(), ... In each of them, this thread's shares begin at
  // place(), place() + kWorkers, ...
  TUTTI_HOST_DEVICE std::uint32_t first() const { return worker_; }
  TUTTI_HOST_DEVICE std::uint32_t step() const { return workers_; }
  TUTTI_HOST_DEVICE static constexpr std::uint32_t place() { return 0; }

  // Maximum over the threads that share a block.
  template <std::uint32_t kBlock>
  TUTTI_HOST_DEVICE static std::uint32_t largest(std::uint32_t own) {
    return own;
  }
  // True if `own` is true for all threads of the thread group.
  TUTTI_HOST_DEVICE static bool all(bool own) { return own; }
  // Barrier: all threads have read what others may overwrite.
  TUTTI_HOST_DEVICE static void join() {}

 private:
  const std::uint32_t worker_, workers_;
};

}  // namespace tutti
