#include "src/executor/cuda/kernel.h"
#include "src/executor/thread_block/residual.h"

namespace tutti {
namespace {

__global__ void __launch_bounds__(kThreads) apply_residuals(const __grid_constant__ ResidualTask task) {
  if (task.blocks == 0) return;  // No work; the task has no addresses then.
  apply_residual(task, {blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x});
}

}  // namespace

const void* residual_kernel() { return reinterpret_cast<const void*>(&apply_residuals); }

}  // namespace tutti
