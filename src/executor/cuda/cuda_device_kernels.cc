// Kernels of a CudaDevice: their limits, and launches.
#include <algorithm>
#include <bit>
#include <string>

#include "src/executor/cuda/cuda_device.h"
#include "src/executor/cuda/kernel.h"
#include "src/executor/cuda/multicast.h"
#include "src/executor/thread_block/residual.h"

namespace tutti {
namespace {

constexpr int kMulticastCapability = 90;     // Kernels for it contain instructions on multicast addresses.
constexpr std::uint32_t kSpareBytes = 1024;  // Shared memory per thread block reserved for the driver.

}  // namespace

// Requests the maximum shared memory and computes the number of resident thread blocks.
Status CudaDevice::prepare_kernel() {
  cudaFuncAttributes kernel;
  const cudaError_t error = cudaFuncGetAttributes(&kernel, plan_kernel());
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction) {
    cudaGetLastError();
    return unsupported("this library has no code for " + traits_.name +
                       ": build it with CMAKE_CUDA_ARCHITECTURES=native on this machine");
  }
  TUTTI_CHECK_OK(check(error, "cudaFuncGetAttributes"));
  int max = 0, processors = 0, thread_blocks = 0;
  TUTTI_CHECK_OK(check(cudaDeviceGetAttribute(&max, cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal_),
                       "cudaDeviceGetAttribute(MaxSharedMemoryPerBlockOptin)"));
  TUTTI_CHECK_OK(check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, ordinal_),
                       "cudaDeviceGetAttribute(MultiProcessorCount)"));
  const auto taken = static_cast<std::uint32_t>(kernel.sharedSizeBytes) + kSpareBytes;
  traits_.thread_block_bytes = (static_cast<std::uint32_t>(max) - taken) / 16 * 16;
  const int bytes = static_cast<int>(traits_.thread_block_bytes);
  traits_.thread_blocks = ~0U;
  for (const void* each : {plan_kernel(), ll_kernel(), compressed_kernel()}) {
    TUTTI_CHECK_OK(check(cudaFuncSetAttribute(each, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                         "cudaFuncSetAttribute(MaxDynamicSharedMemorySize)"));
    TUTTI_CHECK_OK(check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&thread_blocks, each, kThreads, bytes),
                         "cudaOccupancyMaxActiveBlocksPerMultiprocessor"));
    traits_.thread_blocks = std::min(traits_.thread_blocks, static_cast<std::uint32_t>(thread_blocks * processors));
  }
  traits_.multicast = kernel.ptxVersion >= kMulticastCapability && Multicast::offered(ordinal_);
  attributes_ = LaunchAttributes(ordinal_, compressed_kernel(), traits_.thread_block_bytes);
  return {};
}

// Runs each kernel without a call. This loads the kernels; loading may wait for thread blocks that wait for peers. The
// first launch of a kernel that needs more local memory per thread than all kernels before it makes the driver enlarge
// that of the context, which waits for the work of all its streams, also for streams that wait for peers.
Status CudaDevice::run_kernels_once() {
  KernelBatch no_call;
  for (BatchCall& entry : no_call.calls) entry.channels = 0;
  ResidualTask no_task;
  void* batch[] = {&no_call};
  void* task[] = {&no_task};
  for (const void* kernel : {plan_kernel(), ll_kernel(), compressed_kernel(), residual_kernel()}) {
    void** arguments = kernel == residual_kernel() ? task : batch;
    TUTTI_CHECK_OK(check(cudaLaunchKernel(kernel, dim3(1), dim3(kMinThreads), arguments, 0, stream_),
                         "cudaLaunchKernel of an empty call"));
  }
  return check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize after an empty call");
}

Status CudaDevice::launch(const DeviceLaunch& launch, DeviceStream stream) {
  const std::uint32_t count = launch.count;
  std::uint32_t channels = 0;
  for (std::uint32_t i = 0; i < count; ++i) channels = std::max(channels, launch.batch.calls[i].channels);
  const std::uint32_t at_a_time = count / launch.batch.in_order;
  if (channels * at_a_time > traits_.thread_blocks || launch.thread_block_bytes > traits_.thread_block_bytes) {
    return internal_error("a launch of " + std::to_string(count) + " calls with " + std::to_string(channels) +
                          " channels of " + std::to_string(launch.thread_block_bytes) + " bytes on " + traits_.name +
                          ", which has " + std::to_string(traits_.thread_blocks) + " thread blocks of " +
                          std::to_string(traits_.thread_block_bytes));
  }
  const OnDevice here(ordinal_);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(channels, at_a_time);
  config.blockDim = dim3(std::bit_ceil(std::clamp(launch.threads, kMinThreads, kThreads)));
  config.dynamicSmemBytes = launch.thread_block_bytes;
  config.stream = as_stream(stream);
  LaunchAttributes::Room attributes;
  attributes_.add_to(config, attributes, launch.together, launch.shares_device);
  void* arguments[] = {const_cast<KernelBatch*>(&launch.batch)};
  TUTTI_ASSERT(launch.batch.in_order == 1 || (at_a_time == 1 && runs_as_ll(launch.batch, count)));
  const void* kernel = has_compressed_messages(launch.batch) ? compressed_kernel()
                       : runs_as_ll(launch.batch, count)     ? ll_kernel()
                                                             : plan_kernel();
  return check(cudaLaunchKernelExC(&config, kernel, arguments), "cudaLaunchKernelExC");
}

// A few thread blocks per multiprocessor, in a grid-stride loop.
Status CudaDevice::apply_residual(const ResidualTask& task, DeviceStream stream) {
  const OnDevice here(ordinal_);
  constexpr std::uint64_t kGroupsOfBlock = kThreads / 32;
  const std::uint64_t blocks = (task.groups_of_block() * task.blocks + kGroupsOfBlock - 1) / kGroupsOfBlock;
  const auto grid =
      static_cast<unsigned>(std::clamp<std::uint64_t>(blocks, 1, std::uint64_t{4} * traits_.thread_blocks));
  void* arguments[] = {const_cast<ResidualTask*>(&task)};
  return check(cudaLaunchKernel(residual_kernel(), dim3(grid), dim3(kThreads), arguments, 0, as_stream(stream)),
               "cudaLaunchKernel");
}

}  // namespace tutti
