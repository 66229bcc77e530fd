// Interface of engines that run the thread blocks of ranks: threads of the host, or a GPU.
#pragma once

#include <memory_resource>
#include <string>
#include <vector>

#include "src/executor/thread_block/channel.h"

namespace tutti::test {

class Engine {
 public:
  virtual ~Engine() = default;
  // Memory that thread blocks and the host can access, for all data that a KernelCall points to.
  virtual std::pmr::memory_resource* memory() = 0;
  // Zeroed memory for lanes, which the host need not access. Null if the transport allocates lanes.
  virtual std::pmr::memory_resource* lanes() { return nullptr; }
  // Runs all calls[rank][operation]: operations of a rank in order, ranks concurrently. Returns an error, or an empty
  // string on success.
  virtual std::string run(const std::vector<std::vector<KernelCall>>& calls, std::uint32_t channels) = 0;
};

}  // namespace tutti::test
