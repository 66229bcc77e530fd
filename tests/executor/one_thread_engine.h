// Engine that runs the thread blocks of all ranks in the caller's thread. A thread block has one thread, which returns
// when it would wait and resumes after the others have run. The engine never waits, so other load hardly slows it down.
#pragma once

#include "src/executor/thread_block/batch.h"
#include "tests/executor/engine.h"
#include "tests/executor/zeroed_memory.h"

namespace tutti::test {

class OneThreadEngine final : public Engine {
 public:
  std::pmr::memory_resource* memory() override { return std::pmr::get_default_resource(); }
  std::pmr::memory_resource* lanes() override { return &lanes_; }
  std::string run(const std::vector<std::vector<KernelCall>>& calls, std::uint32_t channels) override;

 private:
  ZeroedMemory lanes_;
};

}  // namespace tutti::test
