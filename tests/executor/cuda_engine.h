// A GPU that runs the teams of all ranks.
#pragma once

#include <cuda_runtime.h>

#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "src/executor/team/device.h"
#include "tests/executor/engine.h"

namespace tutti {

// Memory that host and device reach at the same address.
class ManagedMemory final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

// How ranks share the GPU: one kernel for all of them, or one each, in a stream of its own.
enum class Launches : std::uint8_t { together, apart };

// Where a team has its program.
enum class Room : std::uint8_t { shared_memory, workspace };

class CudaEngine final : public Engine {
 public:
  // Needs a device: a test program that has gpu_main.cc does not start its tests without.
  CudaEngine(Launches launches, Room room);
  ~CudaEngine() override;
  CudaEngine(const CudaEngine&) = delete;
  CudaEngine& operator=(const CudaEngine&) = delete;

  std::pmr::memory_resource* memory() override { return &pool_; }
  std::string run(const std::vector<std::vector<TeamCall>>& calls, std::uint32_t channels) override;

 private:
  void launch(const std::vector<BatchCall>& operation);
  BatchCall prepared(const TeamCall& call, std::uint32_t channels, std::uint32_t rank);
  std::string complaints(std::size_t ranks) const;

  const Launches launches_;
  const Room room_;
  std::shared_ptr<Device> device_;
  ManagedMemory managed_;
  std::pmr::unsynchronized_pool_resource pool_{&managed_};
  std::vector<std::pmr::vector<Pack>> workspaces_;  // Until the run is over.
  HostMemory shown_;                                // Of each rank: its report, and how far it has come.
  std::uint32_t team_bytes_ = 0;
  std::vector<cudaStream_t> streams_;
};

}  // namespace tutti
