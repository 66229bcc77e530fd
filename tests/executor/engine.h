// What runs the thread blocks of ranks: threads of the host, or a GPU.
#pragma once

#include <memory_resource>
#include <string>
#include <vector>

#include "src/executor/thread_block/channel.h"

namespace tutti::test {

class Engine {
 public:
  virtual ~Engine() = default;
  // What both its thread blocks and the host can reach: all that a KernelCall points to.
  virtual std::pmr::memory_resource* memory() = 0;
  // Where lanes lie, zeroed: the host need not reach it. Null: where the transport has them.
  virtual std::pmr::memory_resource* lanes() { return nullptr; }
  // Runs all calls[rank][operation]: the operations of a rank one after the other, the ranks beside each other. Empty
  // if all were done, else what went wrong.
  virtual std::string run(const std::vector<std::vector<KernelCall>>& calls, std::uint32_t channels) = 0;
};

}  // namespace tutti::test
