#include "src/executor/cuda/kernel.h"
#include "src/executor/cuda/thread_block.cuh"
#include "src/executor/thread_block/run_call.h"

namespace tutti {
namespace {

extern __shared__ Pack kernel_memory[];

__global__ void __launch_bounds__(kThreads) run_ll(const __grid_constant__ KernelBatch batch) {
  run_ll_calls(batch, blockIdx.y, blockIdx.x, reinterpret_cast<std::byte*>(kernel_memory),
               [](const KernelWatch& watch) { return CudaThreadBlock(watch); });
}

}  // namespace

const void* ll_kernel() { return reinterpret_cast<const void*>(&run_ll); }

}  // namespace tutti
