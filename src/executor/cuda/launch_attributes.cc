#include "src/executor/cuda/launch_attributes.h"

#include "src/executor/cuda/kernel.h"

namespace tutti {
namespace {

// Returns 0 if the driver does not know the attribute.
int attribute_of(cudaDeviceAttr attribute, int ordinal) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, attribute, ordinal) == cudaSuccess) return value;
  cudaGetLastError();
  return 0;
}

cudaLaunchAttribute cluster_of(unsigned blocks) {
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = blocks;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  return cluster;
}

}  // namespace

LaunchAttributes::LaunchAttributes(int ordinal, const void* kernel, std::uint32_t thread_block_bytes)
    : has_domains_(attribute_of(cudaDevAttrMemSyncDomainCount, ordinal) > 1) {
  if (attribute_of(cudaDevAttrClusterLaunch, ordinal) == 0) return;
  cudaLaunchAttribute cluster = cluster_of(kClusterBlocks);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(kClusterBlocks);
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = thread_block_bytes;
  config.attrs = &cluster;
  config.numAttrs = 1;
  int clusters = 0;
  if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess) {
    max_clusters_ = static_cast<std::uint32_t>(clusters);
  } else {
    cudaGetLastError();
  }
}

// The domain: a system fence of the kernel waits for the stores of communication only, not for those of computations.
// Clusters: the channels of a call are spread over the device, and start together. Cooperative launches have none,
// since ranks that share a device need all of its thread blocks.
void LaunchAttributes::add_to(cudaLaunchConfig_t& config, Room& room, bool together, bool shares_device) const {
  config.attrs = room.data();
  config.numAttrs = 0;
  const auto add = [&](const cudaLaunchAttribute& attribute) { room[config.numAttrs++] = attribute; };
  if (together) {
    cudaLaunchAttribute cooperative = {};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    add(cooperative);
  }
  if (has_domains_) {
    cudaLaunchAttribute domain = {};
    domain.id = cudaLaunchAttributeMemSyncDomain;
    domain.val.memSyncDomain = cudaLaunchMemSyncDomainRemote;
    add(domain);
  }
  const unsigned clusters = config.gridDim.x / kClusterBlocks * config.gridDim.y;
  if (together || shares_device || config.gridDim.x % kClusterBlocks != 0 || clusters > max_clusters_) return;
  add(cluster_of(kClusterBlocks));
  cudaLaunchAttribute spread = {};
  spread.id = cudaLaunchAttributeClusterSchedulingPolicyPreference;
  spread.val.clusterSchedulingPolicyPreference = cudaClusterSchedulingPolicySpread;
  add(spread);
}

}  // namespace tutti
