#include "src/executor/cuda/kernel.h"
#include "src/executor/cuda/team.cuh"
#include "src/executor/team/narrow_machine.h"
#include "src/executor/team/run_call.h"

namespace tutti {
namespace {

extern __shared__ Pack team_memory[];

__global__ void __launch_bounds__(kThreads) obey_narrow(const __grid_constant__ TeamBatch batch) {
  const BatchCall& entry = batch.calls[blockIdx.y];
  run_call<NarrowMachine>(entry, blockIdx.x, CudaTeam(entry.watch), reinterpret_cast<std::byte*>(team_memory));
}

}  // namespace

const void* narrow_team_kernel() { return reinterpret_cast<const void*>(&obey_narrow); }

}  // namespace tutti
