// Engine that runs the thread blocks of all ranks on a GPU.
#pragma once

#include <cuda_runtime.h>

#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "tests/executor/device_memory.h"
#include "tests/executor/engine.h"

namespace tutti::test {

// Launches of ranks that share the GPU: one kernel for all of them, or a kernel and a stream for each.
enum class Launches : std::uint8_t { together, apart };

// Memory for the program of a thread block.
enum class Room : std::uint8_t { shared_memory, workspace };

class CudaEngine final : public Engine {
 public:
  // Requires a GPU. Test programs with gpu_main.cc skip their tests without one.
  CudaEngine(Launches launches, Room room);
  ~CudaEngine() override;
  CudaEngine(const CudaEngine&) = delete;
  CudaEngine& operator=(const CudaEngine&) = delete;

  std::pmr::memory_resource* memory() override { return &pool_; }
  // Lanes are in GPU memory, because only there are accesses of LL words and LL128 rows atomic.
  std::pmr::memory_resource* lanes() override { return &own_; }
  std::string run(const std::vector<std::vector<KernelCall>>& calls, std::uint32_t channels) override;

 private:
  void launch(const std::vector<BatchCall>& operation);
  BatchCall prepared(const KernelCall& call, std::uint32_t channels, std::uint32_t rank);
  std::string errors(std::size_t ranks) const;

  const Launches launches_;
  const Room room_;
  std::shared_ptr<Device> device_;
  DeviceReach reach_;
  std::pmr::unsynchronized_pool_resource pool_;  // Reduces allocations of host memory, which take long.
  DeviceArena own_;
  std::vector<std::pair<void*, std::size_t>> workspaces_;  // Allocations in own_ until the end of a run.
  HostMemory shown_;                                       // [rank]: report and progress.
  std::uint32_t thread_block_bytes_ = 0;
  std::vector<cudaStream_t> streams_;
};

}  // namespace tutti::test
