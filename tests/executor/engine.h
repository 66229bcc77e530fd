// Runs the thread blocks of ranks: threads of the host, or a GPU.
#pragma once

#include <memory_resource>
#include <string>
#include <vector>

#include "src/executor/thread_block/channel.h"

namespace tutti::test {

class Engine {
 public:
  virtual ~Engine() = default;
  // Memory that both its thread blocks and the host can access, for everything that a KernelCall points to.
  virtual std::pmr::memory_resource* memory() = 0;
  // Zeroed memory for lanes, which the host need not access. Null: the transport allocates lanes.
  virtual std::pmr::memory_resource* lanes() { return nullptr; }
  // Runs all calls[rank][operation]: the operations of a rank one after the other, the ranks concurrently. Returns an
  // error, or an empty string on success.
  virtual std::string run(const std::vector<std::vector<KernelCall>>& calls, std::uint32_t channels) = 0;
};

}  // namespace tutti::test
