// Attributes with which plans are launched: cooperative launches, and on devices that have them, the memory
// synchronization domain for communication and clusters.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>

namespace tutti {

class LaunchAttributes {
 public:
  // Thread blocks of a cluster. They are spread over multiprocessors of one GPC.
  static constexpr std::uint32_t kClusterBlocks = 4;
  using Room = std::array<cudaLaunchAttribute, 4>;

  LaunchAttributes() = default;  // Only cooperative launches.
  // Asks a device for its capabilities. It must be current. `kernel`: the kernel with the fewest resident clusters,
  // with its maximum `thread_block_bytes` of shared memory.
  LaunchAttributes(int ordinal, const void* kernel, std::uint32_t thread_block_bytes);

  // Adds attributes to a launch with its final grid. They are stored in `room`, which must outlive the launch.
  // `together`, `shares_device`: see DeviceLaunch.
  void add_to(cudaLaunchConfig_t& config, Room& room, bool together, bool shares_device) const;

 private:
  bool has_domains_ = false;
  std::uint32_t max_clusters_ = 0;  // Resident at once; 0: no clusters.
};

}  // namespace tutti
