// Who works on a group of elements where workers are threads of the host: one of them, block after block.
#pragma once

#include <cstdint>

#include "src/base/platform.h"

namespace tutti {

class GroupCrew {
 public:
  static constexpr std::uint32_t kWorkers = 1;
  // Of a crew, under way at a time.
  template <std::uint32_t kBlock>
  static constexpr std::uint32_t kGroups = 1;
  // Elements that a worker takes at a time: all of a block with a scale, or as many as the others of it.
  template <std::uint32_t kBlock>
  static constexpr std::uint32_t kShare = kBlock;

  TUTTI_HOST_DEVICE GroupCrew(std::uint32_t worker, std::uint32_t workers) : worker_(worker), workers_(workers) {}

  // The crew's groups are first(), first() + step(), ...; in each the worker's shares are place(), place() + kWorkers.
  TUTTI_HOST_DEVICE std::uint32_t first() const { return worker_; }
  TUTTI_HOST_DEVICE std::uint32_t step() const { return workers_; }
  TUTTI_HOST_DEVICE static constexpr std::uint32_t place() { return 0; }

  // Of those who have a block together.
  template <std::uint32_t kBlock>
  TUTTI_HOST_DEVICE static std::uint32_t largest(std::uint32_t own) {
    return own;
  }
  // Whether it is so for all of the crew.
  TUTTI_HOST_DEVICE static bool all(bool own) { return own; }
  // All of the crew have read what others of it may write.
  TUTTI_HOST_DEVICE static void join() {}

 private:
  const std::uint32_t worker_, workers_;
};

}  // namespace tutti
