// Kernels that run plans: one thread block per channel of each call of a KernelBatch, the only argument, or per channel
// of all calls. Also the kernel that applies residuals before a call.
#pragma once

#include <cstdint>

namespace tutti {

// Maximum threads per thread block, and minimum where few have work: a warp for each scheduler of an SM.
inline constexpr std::uint32_t kThreads = 512, kMinThreads = 128;

// Returns the symbol to launch. Grid: (channels, calls). Thread blocks have up to kThreads threads, a power of two.
// Dynamic shared memory: that of the widest call's channel, 0 for calls with a workspace.
const void* plan_kernel();
// Like plan_kernel(), for a batch with runs_as_ll(). If its calls run in order, the grid is (channels, 1).
const void* ll_kernel();
// Like plan_kernel(), for a batch with has_compressed_messages() (compression). Thread blocks have kThreads threads.
const void* compressed_kernel();
// Kernel for a ResidualTask, its only argument. Each warp handles one group at a time, so any grid size is valid.
// Thread blocks have kThreads threads.
const void* residual_kernel();

}  // namespace tutti
