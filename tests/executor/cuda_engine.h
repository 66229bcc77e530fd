// A GPU that runs the thread blocks of all ranks.
#pragma once

#include <cuda_runtime.h>

#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "tests/executor/device_memory.h"
#include "tests/executor/engine.h"

namespace tutti::test {

// How ranks share the GPU: one kernel for all of them, or one each, in a stream of its own.
enum class Launches : std::uint8_t { together, apart };

// Where a thread block keeps its program.
enum class Room : std::uint8_t { shared_memory, workspace };

class CudaEngine final : public Engine {
 public:
  // Requires a device: a test program with gpu_main.cc does not run its tests without one.
  CudaEngine(Launches launches, Room room);
  ~CudaEngine() override;
  CudaEngine(const CudaEngine&) = delete;
  CudaEngine& operator=(const CudaEngine&) = delete;

  std::pmr::memory_resource* memory() override { return &pool_; }
  // LL and LL128 need single accesses of words and rows, which only a GPU's own memory guarantees.
  std::pmr::memory_resource* lanes() override { return &own_; }
  std::string run(const std::vector<std::vector<KernelCall>>& calls, std::uint32_t channels) override;

 private:
  void launch(const std::vector<BatchCall>& operation);
  BatchCall prepared(const KernelCall& call, std::uint32_t channels, std::uint32_t rank);
  std::string complaints(std::size_t ranks) const;

  const Launches launches_;
  const Room room_;
  std::shared_ptr<Device> device_;
  DeviceReach reach_;
  std::pmr::unsynchronized_pool_resource pool_;  // Allocating each piece of host memory separately takes long.
  DeviceArena own_;
  std::vector<std::pair<void*, std::size_t>> workspaces_;  // Points into own_, until the end of the run.
  HostMemory shown_;                                       // By rank: its report and its progress.
  std::uint32_t thread_block_bytes_ = 0;
  std::vector<cudaStream_t> streams_;
};

}  // namespace tutti::test
